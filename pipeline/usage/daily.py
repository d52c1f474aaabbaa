"""What was asked for and given, added up: by table and day, by hour, by network."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pipeline.usage.address import network_of
from pipeline.usage.schema import columns_of

_SUMS: Final = ("requests", "grants", "credentials", "files", "bytes_granted", "denials", "failures")


def usage_daily(requests: DataFrame) -> DataFrame:
    """Add requests up for each recipient, table, day and mode.

    Names that differ by case only are one table's: a recipient may spell them as it likes.
    """
    keys = [sf.lower(name).alias(f"{name}_key") for name in ("share", "schema", "table")]
    grouped = requests.groupBy("day", "recipient", *keys, "mode")
    return grouped.agg(
        *(sf.min(name).alias(name) for name in ("share", "schema", "table")),
        *(_sum(name) for name in _SUMS),
        sf.percentile("latency_ms", 0.5).alias("p50_ms"),
        sf.percentile("latency_ms", 0.99).alias("p99_ms"),
        sf.min("at").alias("first_at"),
        sf.max("at").alias("last_at"),
    ).select(columns_of("usage_daily"))


def usage_hourly(requests: DataFrame) -> DataFrame:
    """Add requests up for each recipient and hour."""
    sums = [_sum(name) for name in _SUMS if name != "grants"]
    grouped = requests.groupBy("day", sf.date_trunc("hour", "at").alias("hour"), "recipient")
    return grouped.agg(*sums).select(columns_of("usage_hourly"))


def network_daily(requests: DataFrame) -> DataFrame:
    """Add requests up for each recipient, network and day; nobody's requests are those of unknown callers."""
    grouped = requests.groupBy("day", "recipient", network_of(sf.col("remote")).alias("network"))
    return grouped.agg(
        _sum("requests"), _sum("denials"), sf.min("at").alias("first_at"), sf.max("at").alias("last_at")
    ).select(columns_of("network_daily"))


def _sum(name: str) -> Column:
    return sf.sum(name).alias(name)
