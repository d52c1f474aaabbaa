"""What is done with a batch of lines: the same, however often it is done.

Nothing is added that is there already, and what is derived is made anew from all events of the days that a
batch touches. So a batch that was done in part, or whole and not noted, is simply done again; and lines that
come late, or twice, change nothing but what they should.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from pipeline.usage.anomalies import find_anomalies
from pipeline.usage.daily import network_daily, usage_daily, usage_hourly
from pipeline.usage.ledger import credential_ledger
from pipeline.usage.lines import parse_lines
from pipeline.usage.requests import to_requests, with_closings
from pipeline.usage.schema import columns_of
from pipeline.usage.tables import Batch, UsageTables

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a batch."""

    lines: int = 0
    events: int = 0
    # Lines of events that were there before, or twice in the batch.
    repeated: int = 0
    quarantined: int = 0
    days: Sequence[date] = field(default=())


def fold(tables: UsageTables, lines: DataFrame, batch: Batch) -> Outcome:
    """Take up lines: ``value``, the ``source_file`` and where the block that they were read with starts."""
    parsed = parse_lines(lines).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        survey = _survey(parsed)
        if survey.bad_files:
            _keep_in_quarantine(tables, lines, survey, batch)
        added = _add_events(tables, parsed, survey, batch) if survey.days else 0
    finally:
        parsed.unpersist()
    if survey.days:
        derive(tables, survey.days)
    return Outcome(
        lines=survey.lines,
        events=added,
        repeated=survey.lines - survey.bad - added,
        quarantined=survey.bad,
        days=survey.days,
    )


def derive(tables: UsageTables, touched: Sequence[date]) -> None:
    """Make anew what is derived from the events of some days."""
    # What closes a grant may lie behind midnight, and what it opened before.
    days = _with_next(touched)
    events = tables.read("events", _with_next(days))
    paired = with_closings(events).where(sf.col("day").isin(days)).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        requests = to_requests(paired)
        tables.replace_days("credential_ledger", credential_ledger(paired), days)
        tables.replace_days("network_daily", network_daily(requests), days)
        tables.replace_days("usage_hourly", usage_hourly(requests), days)
        tables.replace_days("usage_daily", usage_daily(requests), days)
    finally:
        paired.unpersist()
    # A day is held against those before it: what comes late changes what is unusual later.
    usage, networks = tables.read("usage_daily").persist(), tables.read("network_daily").persist()
    try:
        tables.replace_since("anomalies", find_anomalies(usage, networks, days[0]), days[0])
    finally:
        usage.unpersist()
        networks.unpersist()


def _with_next(days: Sequence[date]) -> Sequence[date]:
    return sorted({day + _DAY * step for day in days for step in (-1, 0, 1)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Survey:
    lines: int
    bad: int
    bad_files: Sequence[str]
    days: Sequence[date]
    # When the first and the last of its events were; none where there are no days.
    times: tuple[datetime, datetime]


def _survey(parsed: DataFrame) -> _Survey:
    is_good = sf.col("reason").isNull()
    row = parsed.agg(
        sf.count("*").alias("lines"),
        sf.count_if(~is_good).alias("bad"),
        sf.collect_set(sf.when(~is_good, sf.col("source_file"))).alias("bad_files"),
        sf.collect_set(sf.when(is_good, sf.col("day"))).alias("days"),
        sf.min(sf.when(is_good, sf.col("at"))).alias("first_at"),
        sf.max(sf.when(is_good, sf.col("at"))).alias("last_at"),
    ).collect()[0]
    return _Survey(
        lines=row["lines"],
        bad=row["bad"],
        bad_files=sorted(row["bad_files"]),
        days=sorted(row["days"]),
        times=(row["first_at"], row["last_at"]),
    )


def _add_events(tables: UsageTables, parsed: DataFrame, survey: _Survey, batch: Batch) -> int:
    """Add the events that are not there; return how many."""
    # Files of other times are not read: an event that comes twice has its time both times.
    there = tables.read("events", survey.days).where(sf.col("at").between(*survey.times))
    events = parsed.where(sf.col("reason").isNull()).select(columns_of("events")).dropDuplicates(["id"])
    fresh = events.join(there.select("id"), "id", "left_anti").select(columns_of("events"))
    fresh = fresh.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        added = fresh.count()
        tables.append("events", fresh, batch)
    finally:
        fresh.unpersist()
    return added


def _keep_in_quarantine(tables: UsageTables, lines: DataFrame, survey: _Survey, batch: Batch) -> None:
    """Keep the lines that are no events, by their place in their files."""
    within = Window.partitionBy("source_file").orderBy("block_start", "row")
    # A block is read by one task, from its first line to its last.
    ordered = lines.withColumn("row", sf.monotonically_increasing_id())
    numbered = ordered.withColumn("line_number", sf.row_number().over(within).cast("bigint"))
    # All lines of these files are counted, and no others are read.
    numbered = numbered.where(sf.col("source_file").isin(list(survey.bad_files)))
    bad = parse_lines(numbered).where(sf.col("reason").isNotNull())
    kept = bad.select(
        *("source_file", "line_number", "reason", "detail"),
        sf.make_valid_utf8("value").alias("line"),
        sf.when(~sf.is_valid_utf8("value"), sf.col("value").cast("binary")).alias("raw"),
    )
    there = tables.read("quarantine").select("source_file", "line_number")
    tables.append("quarantine", kept.join(there, ["source_file", "line_number"], "left_anti"), batch)
