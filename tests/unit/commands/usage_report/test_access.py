from __future__ import annotations

import json
from datetime import timedelta

import pytest

from gateway.commands.usage_report.access import AccessQuestion, who_could_read
from gateway.domain.location import parse_location
from tests.fakes.usage_tables import NOON, grant, write_table
from tests.unit.commands.usage_report.test_tables import reader_of

HOUR = timedelta(hours=1)
GRANTS = [
    grant("s3://lake/orders", NOON, NOON + HOUR),
    grant("s3://lake/orders_old", NOON, NOON + HOUR, recipient="globex"),
    grant("s3://lake", NOON - 30 * HOUR, NOON + HOUR, recipient="owner"),
    grant("file:///data", NOON, NOON + HOUR, recipient="local"),
]


@pytest.mark.parametrize(
    ("place", "after", "expected"),
    [
        ("s3://lake/orders", HOUR / 2, ["acme", "owner"]),
        ("s3a://lake/orders/part-1.parquet", HOUR / 2, ["acme", "owner"]),
        ("s3://lake/orders", timedelta(0), ["acme", "owner"]),
        ("s3://lake/orders", HOUR, []),
        ("s3://lake/orders", -HOUR, ["owner"]),
        ("s3://lake/orders_old/x", HOUR / 2, ["globex", "owner"]),
        ("s3://lake/ord", HOUR / 2, ["owner"]),
        ("s3://lakes/orders", HOUR / 2, []),
        ("/data/a/b", HOUR / 2, ["local"]),
    ],
)
async def test_those_who_could_read_a_place_are_found(tmp_path, place, after, expected):
    write_table(tmp_path / "credential_ledger", GRANTS)
    question = AccessQuestion(place=parse_location(place), at=NOON + after)
    rows = await who_could_read(reader_of(tmp_path), question)
    assert [row["recipient"] for row in rows] == expected


async def test_files_whose_grants_all_ended_are_not_read_and_others_are(tmp_path):
    until = NOON + HOUR
    stats = json.dumps({"maxValues": {"valid_until": until.isoformat(timespec="milliseconds")}})
    write_table(tmp_path / "credential_ledger", GRANTS[:1], add={"stats": stats})
    reader = reader_of(tmp_path)

    async def found(at):
        question = AccessQuestion(place=parse_location("s3://lake/orders"), at=at)
        return await who_could_read(reader, question)

    assert len(await found(until - timedelta(microseconds=1))) == 1
    (next((tmp_path / "credential_ledger").rglob("*.parquet"))).unlink()
    assert await found(until + HOUR) == []
