"""What a report says, added up from the tables of usage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

import polars as pl

from gateway.commands.usage_report.tables import Columns, DataFile, UsageReader, counts, texts, times

_DAILY: Final[Columns] = {
    "day": pl.Date(),
    **texts("recipient", "share", "schema", "table", "mode"),
    **counts("requests", "grants", "credentials", "files", "bytes_granted", "denials", "failures"),
    **dict.fromkeys(("p50_ms", "p99_ms"), pl.Float64()),
    **times("first_at", "last_at"),
}
_HOURLY: Final[Columns] = {
    "day": pl.Date(),
    **times("hour"),
    **texts("recipient"),
    **counts("requests", "files", "bytes_granted", "credentials", "denials", "failures"),
}
_ANOMALIES: Final[Columns] = {
    "day": pl.Date(),
    **texts("rule", "recipient", "share", "schema", "table", "network", "measure", "explanation"),
    **dict.fromkeys(("measured", "threshold"), pl.Float64()),
}
_SUMS: Final = ("requests", "files", "bytes_granted", "credentials", "denials", "failures")
_RULES: Final = {"many_networks": 1, "unusual_volume": 2, "many_denials": 3, "first_use": 4}
_NOBODY: Final = "(unknown caller)"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Days, the last one included."""

    since: date
    until: date

    def has(self, day: date | None) -> bool:
        return day is not None and self.since <= day <= self.until

    @property
    def days(self) -> Sequence[date]:
        return [self.since + timedelta(days=number) for number in range((self.until - self.since).days + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Everything that the reports of a period show."""

    period: Period
    totals: Row
    tables: Sequence[Row]
    recipients: Sequence[Row]
    days: Sequence[Row]
    # The hours of one day.
    day: date
    hours: Sequence[Row]
    anomalies: Sequence[Row]


async def gather_figures(reader: UsageReader, period: Period, day: date | None = None) -> Figures:
    """Read what the tables say of a period, and of the hours of a day: the last one with requests."""

    def wanted(file: DataFile) -> bool:
        return period.has(file.day)

    daily = await reader.read("usage_daily", _DAILY, wanted)
    anomalies = await reader.read("anomalies", _ANOMALIES, wanted)
    chosen = day or max(daily.get_column("day").to_list(), default=period.until)
    hourly = await reader.read("usage_hourly", _HOURLY, lambda file: file.day == chosen)
    return Figures(
        period=period,
        totals=_totals(daily),
        tables=_tables(daily),
        recipients=_recipients(daily),
        days=_days(daily, period),
        day=chosen,
        hours=_hours(hourly, chosen),
        anomalies=_anomalies(anomalies),
    )


def _totals(daily: pl.DataFrame) -> Row:
    known = daily.filter(pl.col("recipient") != "")
    given = daily.filter(pl.col("grants") > 0)
    sums = {name: int(daily.get_column(name).sum()) for name in _SUMS}
    tables = given.select(_keys()).unique().height
    return sums | {"recipients": known.get_column("recipient").n_unique(), "tables": tables}


def _tables(daily: pl.DataFrame) -> Sequence[Row]:
    """Return the tables of which anything was given: a name that was only refused may be of no table."""
    grouped = daily.group_by(_keys()).agg(
        *(pl.col(name).min() for name in ("share", "schema", "table")),
        *_sums(),
        pl.col("grants").sum(),
        pl.col("recipient").filter(pl.col("grants") > 0).n_unique().alias("recipients"),
        pl.col("p99_ms").max().alias("worst_daily_p99_ms"),
        pl.col("last_at").max(),
    )
    given = grouped.filter(pl.col("grants") > 0)
    ranked = given.sort(["bytes_granted", "requests", "table_key"], descending=[True, True, False])
    name = pl.concat_str("share", "schema", "table", separator=".").alias("name")
    return ranked.select(name, *_SUMS, "recipients", "worst_daily_p99_ms", "last_at").to_dicts()


def _recipients(daily: pl.DataFrame) -> Sequence[Row]:
    has_grant = pl.col("grants") > 0
    grouped = daily.group_by("recipient").agg(
        *_sums(),
        pl.struct(_keys()).filter(has_grant).n_unique().alias("tables"),
        pl.col("p99_ms").max().alias("worst_daily_p99_ms"),
        pl.col("last_at").max(),
    )
    ranked = grouped.sort(["bytes_granted", "requests", "recipient"], descending=[True, True, False])
    name = pl.when(pl.col("recipient") == "").then(pl.lit(_NOBODY)).otherwise(pl.col("recipient"))
    return ranked.select(name.alias("name"), *_SUMS, "tables", "worst_daily_p99_ms", "last_at").to_dicts()


def _days(daily: pl.DataFrame, period: Period) -> Sequence[Row]:
    """Return every day, also those on which nothing happened."""
    all_days = pl.DataFrame({"day": period.days}, schema={"day": pl.Date})
    sums = daily.group_by("day").agg(*_sums())
    return all_days.join(sums, on="day", how="left").fill_null(0).sort("day").to_dicts()


def _hours(hourly: pl.DataFrame, day: date) -> Sequence[Row]:
    midnight = datetime.combine(day, time(), UTC)
    hours = [midnight + timedelta(hours=number) for number in range(24)]
    all_hours = pl.DataFrame({"hour": hours}, schema={"hour": pl.Datetime("us", "UTC")})
    sums = hourly.group_by("hour").agg(*_sums())
    return all_hours.join(sums, on="hour", how="left").fill_null(0).sort("hour").to_dicts()


def _anomalies(found: pl.DataFrame) -> Sequence[Row]:
    """Return the latest first, and of a day what is rarest."""
    rank = pl.col("rule").replace_strict(_RULES, default=0, return_dtype=pl.Int64).alias("rank")
    ranked = found.with_columns(rank).sort(
        ["day", "rank", "recipient", "explanation"], descending=[True, False, False, False]
    )
    return ranked.drop("rank").to_dicts()


def _sums() -> list[pl.Expr]:
    return [pl.col(name).sum() for name in _SUMS]


def _keys() -> list[pl.Expr]:
    return [pl.col(name).str.to_lowercase().alias(f"{name}_key") for name in ("share", "schema", "table")]
