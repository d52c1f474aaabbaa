from __future__ import annotations

import ipaddress
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import functions as sf

from gateway.domain.audit import AuditEvent, AuditKind
from gateway.domain.location import parse_location
from pipeline.usage.address import network_of, place_of
from pipeline.usage.anomalies import Limits, find_anomalies
from pipeline.usage.daily import usage_daily
from pipeline.usage.lines import parse_lines
from pipeline.usage.odd_line import read_line
from pipeline.usage.requests import to_requests, with_closings
from pipeline.usage.schema import NETWORK_DAILY, USAGE_DAILY, columns_of
from tests.components import SPARK_PIPELINE
from tests.fakes.audit_lines import MALFORMED, START, Story, line_of, parsed
from tests.oracles import usage as oracle

pytestmark = pytest.mark.component(SPARK_PIPELINE)

ADDRESSES = [
    *("10.0.0.7", "255.1.2.3", "2001:db8::7", "2001:db8:0:1::", "::1", "fe80::1:2:3", "1:2:3:4:5:6:7:8"),
    *("2001:0db8:00aa::", "::ffff:10.2.3.4"),
]
LOCATIONS = [
    *("s3://lake/a/b", "s3a://lake/a/b/", "S3N://lake", "gs://lake/x/", "/data/orders", "file:/data/orders/"),
    *(
        "file:///data/orders",
        "abfss://c@acc.dfs.core.windows.net/x",
        "wasbs://C@acc.blob.core.windows.net/x/",
    ),
]
DAY = date(2026, 11, 17)


def test_lines_are_read_alike_by_both_readers(spark):
    lines = [*Story(3).lines(60), *MALFORMED]
    frame = spark.createDataFrame([(bytearray(line),) for line in lines], "value binary")
    # As the text source has them: bytes, whether they are letters or not.
    parsed = parse_lines(frame.select(sf.col("value").cast("string")))
    found = {row["value_bytes"]: row for row in _with_bytes(parsed)}
    assert len(found) == len(lines)
    for line in lines:
        expected, row = read_line(line), found[line]
        assert row["reason"] == expected.get("reason"), line[:80]
        if expected.get("reason") is None:
            told = {name: row[name] for name in columns_of("events") if name not in ("at", "expires_at")}
            assert told == {name: expected[name] for name in told}
            assert row["at_us"] == _micros(expected["at"])
            assert row["end_us"] == (expected["expires_at"] and _micros(expected["expires_at"]))


def test_addresses_have_the_networks_that_python_knows(spark):
    frame = spark.createDataFrame([(one,) for one in ADDRESSES], "remote string")
    found = {
        row["remote"]: row["network"]
        for row in frame.select("remote", network_of(sf.col("remote")).alias("network")).collect()
    }
    assert found == {one: network(one) for one in ADDRESSES}


@pytest.mark.parametrize(
    ("remote", "expected"),
    [
        ("ipv4:10.9.8.7:4711", "10.9.8.0/24"),
        ("ipv6:%5B2001:db8::7%5D:4711", "2001:db8:0::/48"),
        ("unix:/run/sluice.sock", "unknown"),
        ("", "unknown"),
        ("1234.1.1.1", "unknown"),
    ],
)
def test_peers_of_grpc_have_networks_too(spark, remote, expected):
    frame = spark.createDataFrame([(remote,)], "remote string")
    assert frame.select(network_of(sf.col("remote"))).first()[0] == expected


def test_places_are_spelled_as_the_gateway_compares_them(spark):
    frame = spark.createDataFrame([(one,) for one in LOCATIONS], "location string")
    found = {row[0]: row[1] for row in frame.select("location", place_of(sf.col("location"))).collect()}
    for one in LOCATIONS:
        place = parse_location(one)
        assert found[one] == f"{place.scheme}://{place.authority}/{place.path}".removesuffix("/"), one


def test_each_rule_finds_its_case_and_says_so_in_words(spark):
    usage = [
        *(usage_row(date(2026, 11, day), "acme", bytes_granted=10 * 1024**3) for day in range(1, 17)),
        usage_row(DAY, "acme", bytes_granted=90 * 1024**3),
        *(usage_row(date(2026, 11, day), "calm", bytes_granted=10 * 1024**3) for day in range(1, 18)),
        usage_row(DAY, "locked", requests=30, denials=25, grants=0),
    ]
    networks = [
        *(network_row("roamer", f"10.0.{number}.0/24") for number in range(6)),
        *(network_row("homely", f"10.0.{number}.0/24") for number in range(5)),
        network_row("", "192.0.2.0/24", denials=20),
        network_row("", "198.51.100.0/24", denials=19),
    ]
    found = anomalies(spark, usage, networks)
    assert {(row["rule"], row["recipient"], row["network"], row["measure"]) for row in found} == {
        ("unusual_volume", "acme", "", "bytes_granted"),
        ("many_denials", "locked", "", "denials"),
        ("many_denials", "", "192.0.2.0/24", "denials"),
        ("many_networks", "roamer", "", "networks"),
    }
    words = {row["rule"]: row["explanation"] for row in found if row["network"] == ""}
    assert words["unusual_volume"] == (
        "acme took 90.0 GiB of files, more than 30.0 GiB: its median of 16 days before is 10.0 GiB"
    )
    assert words["many_denials"] == "locked was refused 25 of 30 requests; from 20 on that is worth a look"
    assert words["many_networks"].startswith(
        "tokens of roamer were used from 6 networks, more than 5: 10.0.0.0/24,"
    )


def test_first_use_of_a_table_is_told_once_however_it_is_spelled(spark):
    usage = [
        usage_row(date(2026, 11, 16), "acme"),
        usage_row(DAY, "acme", table="ORDERS"),
        usage_row(DAY, "globex"),
        usage_row(DAY, "denied", grants=0, denials=1),
    ]
    found = anomalies(spark, usage, [], first=date(2026, 11, 1))
    assert {(row["rule"], row["recipient"], row["day"], row["table"]) for row in found} == {
        ("first_use", "acme", date(2026, 11, 16), "orders"),
        ("first_use", "globex", DAY, "orders"),
    }


def test_recipient_without_history_has_no_unusual_volume(spark):
    usage = [usage_row(date(2026, 11, day), "new", bytes_granted=1) for day in range(11, 17)]
    usage.append(usage_row(DAY, "new", bytes_granted=10**15))
    assert [row["rule"] for row in anomalies(spark, usage, [])] == []


@pytest.mark.parametrize("operation", ["getQueryInfo", "ofAnotherVersion"])
def test_closing_event_has_the_mode_of_its_grant(spark, operation):
    lines = [
        told(0, AuditKind.GRANT, operation, mode="url", files=3),
        told(1, AuditKind.REQUEST, operation, files=9),
        # What is closed is not closed again.
        told(2, AuditKind.REQUEST, operation),
        # Too late to be of the same request.
        told(3, AuditKind.GRANT, operation, mode="url", files=2, request_id="late"),
        told(3 + 24 * 60, AuditKind.REQUEST, operation, request_id="late"),
    ]
    counted = by_mode(spark, lines)
    again = "url" if operation == "getQueryInfo" else "none"
    assert counted["url", "requests"] + counted["none", "requests"] == 4
    assert counted["url", "requests"] == (4 if again == "url" else 2)
    assert (counted["url", "files"], counted["url", "grants"]) == (9 + 2, 2)


def test_denial_under_the_name_of_a_credential_does_not_hide_it(spark):
    operation = "generateTemporaryTableCredentials"
    lines = [
        told(0, AuditKind.GRANT, operation, mode="dir"),
        told(1, AuditKind.GRANT, operation, mode="dir"),
        told(2, AuditKind.DENIAL, operation, outcome="RESOURCE_DOES_NOT_EXIST"),
    ]
    counted = by_mode(spark, lines)
    assert [counted["dir", name] for name in ("requests", "grants", "denials")] == [3, 2, 1]


def test_names_that_strangers_make_up_are_one_row(spark):
    stranger = {"principal": "", "outcome": "UNAUTHENTICATED"}
    lines = [
        told(0, AuditKind.DENIAL, "queryTable", table=f"guess-{number}", **stranger) for number in (1, 2)
    ]
    lines.append(told(1, AuditKind.DENIAL, "queryTable", outcome="RESOURCE_DOES_NOT_EXIST"))
    day = START.date().isoformat()
    assert oracle.usage_daily(parsed(lines)).keys() == {
        (day, "", "", "", "", "url"),
        (day, "acme", "sales", "eu", "orders", "url"),
    }
    assert by_mode(spark, lines)["url", "denials"] == 3


def by_mode(spark, lines):
    """Count what events tell by mode, as plain Python counts it too."""
    frame = spark.createDataFrame([(line.decode(),) for line in lines], "value string")
    events = parse_lines(frame).select(columns_of("events"))
    rows = [row.asDict() for row in usage_daily(to_requests(with_closings(events))).collect()]
    expected = oracle.usage_daily(parsed(lines))
    assert {usage_key(row): row["requests"] for row in rows} == {
        key: row["requests"] for key, row in expected.items()
    }
    found: Counter[tuple[str, str]] = Counter()
    for row in rows:
        found.update({(row["mode"], name): row[name] for name in ("requests", "grants", "files", "denials")})
    return found


def usage_key(row):
    names = (row[name].lower() for name in ("share", "schema", "table"))
    return (row["day"].isoformat(), row["recipient"], *names, row["mode"])


def told(minutes, kind, operation, **facts):
    """Return the line of an event so long after a start."""
    known: dict[str, Any] = {"principal": "acme", "share": "sales", "schema": "eu", "table": "orders"}
    at = START + timedelta(minutes=minutes)
    known |= {"id": f"{minutes}-{kind}-{facts}", "outcome": "OK", "request_id": "one"} | facts
    return line_of(AuditEvent(at=at, kind=kind, operation=operation, **known))


def anomalies(spark, usage, networks, first=DAY):
    frame = find_anomalies(
        spark.createDataFrame(usage, USAGE_DAILY),
        spark.createDataFrame(networks, NETWORK_DAILY),
        first,
        Limits(),
    )
    return [row.asDict() for row in frame.collect()]


def usage_row(day, recipient, *, table="orders", requests=1, grants=1, denials=0, bytes_granted=0):
    at = datetime(day.year, day.month, day.day, 8)  # noqa: DTZ001 -- as Spark takes it
    facts = (requests, grants, 0, 0, bytes_granted, denials, 0, None, None, at, at)
    return (day, recipient, "sales", "eu", table, "url", *facts)


def network_row(recipient, name, denials=0):
    at = datetime(2026, 11, 17, 8)  # noqa: DTZ001 -- as Spark takes it
    return (DAY, recipient, name, max(denials, 1), denials, at, at)


def network(address: str) -> str:
    parsed = ipaddress.ip_address(address)
    parsed = getattr(parsed, "ipv4_mapped", None) or parsed
    if parsed.version == 4:
        return f"{'.'.join(str(parsed).split('.')[:3])}.0/24"
    groups = [group.lstrip("0") or "0" for group in parsed.exploded.split(":")[:3]]
    return f"{':'.join(groups)}::/48"


def _with_bytes(parsed):
    return (
        parsed.select(
            "*",
            sf.col("value").cast("binary").alias("value_bytes"),
            sf.unix_micros("at").alias("at_us"),
            sf.unix_micros("expires_at").alias("end_us"),
        )
        .drop("value")
        .collect()
    )


def _micros(at: datetime) -> int:
    return round((at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 10**6)
