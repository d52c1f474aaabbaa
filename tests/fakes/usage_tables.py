"""The tables of usage as Delta tables on disk, made without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl

DAY = date(2026, 11, 17)
NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)


def write_table(
    directory: Path, rows: Sequence[Mapping[str, Any]], *, add: Mapping[str, Any] | None = None
) -> None:
    """Write a table with a file for each day; ``add`` says more of each file in the log."""
    log = directory / "_delta_log"
    log.mkdir(parents=True)
    actions: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "t",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": '{"type":"struct","fields":[]}',
                "partitionColumns": ["day"],
                "configuration": {},
            }
        },
    ]
    for number, day in enumerate(sorted({row["day"] for row in rows})):
        path = f"day={day}/part-{number:05d}.c000.snappy.parquet"
        own = pl.DataFrame(
            [{k: v for k, v in row.items() if k != "day"} for row in rows if row["day"] == day]
        )
        (directory / path).parent.mkdir()
        own.write_parquet(directory / path)
        facts = {"path": path, "partitionValues": {"day": str(day)}, "size": 1, "modificationTime": 0}
        actions.append({"add": {**facts, "dataChange": True, **(add or {})}})
    (log / f"{0:020d}.json").write_text("\n".join(json.dumps(action) for action in actions) + "\n")


def daily(recipient: str = "acme", table: str = "orders", day: date = DAY, **facts: Any) -> dict[str, Any]:
    counts = dict.fromkeys(("credentials", "files", "bytes_granted", "denials", "failures"), 0)
    known = {
        "day": day,
        "recipient": recipient,
        "share": "sales",
        "schema": "eu",
        "table": table,
        "mode": "url",
    }
    times = {"first_at": NOON, "last_at": NOON, "p50_ms": 5.0, "p99_ms": 9.0}
    return {**known, "requests": 1, "grants": 1, **counts, **times, **facts}


def hourly(hour: int, day: date = DAY, **facts: Any) -> dict[str, Any]:
    at = datetime(day.year, day.month, day.day, hour, tzinfo=UTC)
    counts = dict.fromkeys(("files", "bytes_granted", "credentials", "denials", "failures"), 0)
    return {"day": day, "hour": at, "recipient": "acme", "requests": 1, **counts, **facts}


def anomaly(rule: str = "first_use", day: date = DAY, **facts: Any) -> dict[str, Any]:
    names = dict.fromkeys(("share", "schema", "table", "network"), "")
    told = {"measure": "denials", "measured": 30.0, "threshold": 20.0, "explanation": f"{rule} of acme"}
    return {"day": day, "rule": rule, "recipient": "acme", **names, **told, **facts}


def grant(place: str, since: datetime, until: datetime, **facts: Any) -> dict[str, Any]:
    names = ("actor", "share", "schema", "table", "credential_id", "remote", "request_id", "event_id")
    known = {"recipient": "acme", "mode": "dir", "opens": "directory", "location": place, "place": place}
    times = {"day": since.date(), "valid_from": since, "valid_until": until}
    return {**times, **dict.fromkeys(names, ""), **known, "files": 0, **facts}
