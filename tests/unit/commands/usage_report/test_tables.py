from __future__ import annotations

from datetime import date

import polars as pl
import pytest

from gateway.commands.usage_report.tables import UsageReader, counts, texts
from gateway.domain.location import parse_location
from gateway.errors import NotFound, Unavailable, Unsupported
from tests.fakes.usage_tables import DAY, daily, write_table
from vendors.local.state import LocalState

COLUMNS = {"day": pl.Date(), **texts("recipient", "region"), **counts("requests")}


def reader_of(directory) -> UsageReader:
    return UsageReader(store=LocalState(directory), location=parse_location(str(directory)))


async def test_partition_and_columns_that_are_not_there_are_filled_in(tmp_path):
    write_table(tmp_path / "usage_daily", [daily(requests=4)])
    frame = await reader_of(tmp_path).read("usage_daily", COLUMNS)
    assert frame.to_dicts() == [{"day": DAY, "recipient": "acme", "region": None, "requests": 4}]


async def test_files_of_other_days_are_not_read(tmp_path):
    write_table(tmp_path / "usage_daily", [daily(day=date(2026, 11, 1)), daily()])
    (tmp_path / "usage_daily" / "day=2026-11-01" / "part-00000.c000.snappy.parquet").unlink()
    reader = reader_of(tmp_path)
    assert (await reader.read("usage_daily", COLUMNS, lambda file: file.day == DAY)).height == 1
    with pytest.raises(Unavailable, match="went away"):
        await reader.read("usage_daily", COLUMNS)


async def test_table_that_nobody_made_is_named(tmp_path):
    with pytest.raises(
        NotFound, match=r"there is no table usage_daily at .*: `sluice pipeline usage` makes it"
    ):
        await reader_of(tmp_path).read("usage_daily", COLUMNS)


async def test_deletion_vectors_are_refused_and_not_ignored(tmp_path):
    vector = {
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
        "sizeInBytes": 4,
        "cardinality": 1,
    }
    write_table(tmp_path / "usage_daily", [daily()], add={"deletionVector": vector})
    with pytest.raises(Unsupported, match="deletion vectors"):
        await reader_of(tmp_path).read("usage_daily", COLUMNS)
