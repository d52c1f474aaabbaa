"""A landing and the tables of usage in a directory, and what they hold."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.jobs.usage import run
from tests.oracles import usage as oracle

COUNTED = ("requests", "grants", "credentials", "files", "bytes_granted", "denials", "failures")


@dataclass
class Lake:
    directory: Path
    # Where segments land; None: beside the tables.
    landing: Path | None = None

    @property
    def plan(self) -> dict[str, Any]:
        return {
            "landing_url": f"file:{self.landing or self.directory / 'landing'}",
            "location_url": f"file:{self.directory}/tables",
            "max_files_per_trigger": 2,
        }

    def land(self, name: str, lines: list[bytes]) -> None:
        day = self.directory / "landing" / "2026-11-16"
        day.mkdir(parents=True, exist_ok=True)
        # Moved into place, so that a stream never reads half a segment.
        fresh = self.directory / name
        fresh.write_bytes(b"".join(line + b"\n" for line in lines))
        fresh.replace(day / f"audit-{name}.jsonl")

    def run(self, spark) -> dict[str, Any]:
        return run(spark, self.plan, lambda *_: None)

    def rows(self, spark, name: str) -> list[dict[str, Any]]:
        frame = spark.read.format("delta").load(f"{self.plan['location_url']}/{name}")
        return [row.asDict() for row in frame.collect()]

    def usage(self, spark) -> dict[tuple[str, ...], dict[str, Any]]:
        """Return the counts as the oracle has them."""
        found: dict[tuple[str, ...], dict[str, Any]] = {}
        for row in self.rows(spark, "usage_daily"):
            names = (row["share"].lower(), row["schema"].lower(), row["table"].lower())
            key = (row["day"].isoformat(), row["recipient"], *names, row["mode"])
            assert key not in found
            found[key] = {name: row[name] for name in (*COUNTED, "p50_ms", "p99_ms")}
        return found

    def assert_tells(self, spark, events: list[dict[str, Any]]) -> None:
        """Hold the tables against what plain Python makes of the events."""
        kept = oracle.distinct(events)
        assert sorted(row["id"] for row in self.rows(spark, "events")) == sorted(one["id"] for one in kept)
        found, expected = self.usage(spark), oracle.usage_daily(kept)
        assert found.keys() == expected.keys()
        for key, row in expected.items():
            assert found[key] == {name: approximately(row.get(name, 0)) for name in found[key]}, key
        ledger = {
            (
                row["event_id"],
                row["location"],
                row["recipient"],
                utc(row["valid_from"]),
                utc(row["valid_until"]),
            )
            for row in self.rows(spark, "credential_ledger")
        }
        assert ledger == oracle.ledger(kept)


def approximately(value: Any) -> Any:
    return pytest.approx(value) if isinstance(value, float) else value


def utc(naive: datetime) -> datetime:
    """Return a time as Spark hands it out, which is this machine's."""
    return naive.astimezone(UTC)
