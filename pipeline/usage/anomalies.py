"""What is out of the ordinary, by rules that say what they measured, against what, and in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as sf

from pipeline.usage.schema import columns_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """From when on something is worth a look."""

    # Days before, of which so many must have seen the recipient.
    history_days: int = 28
    least_history: int = 7
    # Volumes below these never are, whatever the history.
    bytes_granted: int = 1024**3
    requests: int = 1000
    credentials: int = 50
    # A day counts from so many times the median on, and so many median deviations from it.
    times_median: int = 3
    deviations: int = 6
    denials: int = 20
    # Of a recipient's requests.
    denied_share: float = 0.2
    networks: int = 5
    times_networks: int = 2


LIMITS: Final = Limits()
_VOLUMES: Final = {"bytes_granted": "of files", "requests": "requests", "credentials": "credentials"}
_SUBJECT: Final = ("share", "schema", "table", "network")
# Networks that an explanation names.
_NAMED: Final = 5
_UNITS: Final = (("MiB", 1024**2), ("GiB", 1024**3), ("TiB", 1024**4))


def find_anomalies(
    usage: DataFrame, networks: DataFrame, first_day: date, limits: Limits = LIMITS
) -> DataFrame:
    """Return what is out of the ordinary on a day or later; what came before is what it is held against."""
    found = (first_use(usage), *by_recipient(usage, limits), *by_network(networks, limits))
    rows = reduce(DataFrame.unionByName, found)
    return rows.where(sf.col("day") >= sf.lit(first_day)).select(columns_of("anomalies"))


def first_use(usage: DataFrame) -> DataFrame:
    """Return the first day on which each recipient was given anything of each table."""
    given = usage.where((sf.col("grants") > 0) & (sf.col("recipient") != ""))
    key = [sf.lower(name).alias(f"{name}_key") for name in ("share", "schema", "table")]
    first = given.groupBy("recipient", *key).agg(
        sf.min("day").alias("day"),
        *(sf.min_by(name, sf.struct("day", name)).alias(name) for name in ("share", "schema", "table")),
        sf.min("first_at").alias("first_at"),
    )
    words = sf.format_string(
        "%s was given access to %s.%s.%s for the first time, at %s UTC",
        *("recipient", "share", "schema", "table"),
        sf.date_format("first_at", "yyyy-MM-dd HH:mm"),
    )
    none = sf.lit(0.0)
    return _rows(first, "first_use", "earlier days", _Measured(value=none, limit=none, words=words))


def by_recipient(usage: DataFrame, limits: Limits) -> tuple[DataFrame, ...]:
    """Return the days on which a recipient took far more than before, or was refused often."""
    sums = [sf.sum(name).alias(name) for name in (*_VOLUMES, "denials")]
    daily = usage.where(sf.col("recipient") != "").groupBy("day", "recipient").agg(*sums)
    before = _days_before(limits.history_days)
    lists = [sf.collect_list(name).over(before).alias(f"{name}_before") for name in _VOLUMES]
    held = daily.select("*", *lists)
    return (*(_unusual_volume(held, name, limits) for name in _VOLUMES), _many_denials(daily, limits))


def by_network(networks: DataFrame, limits: Limits) -> tuple[DataFrame, ...]:
    """Return the days on which a token was used from many networks, and the networks of refused strangers."""
    strangers = networks.where((sf.col("recipient") == "") & (sf.col("denials") >= limits.denials))
    words = sf.format_string(
        "callers without a valid token were refused %d times from %s; from %d on that is worth a look",
        *("denials", "network", sf.lit(limits.denials)),
    )
    refused = _Measured(value=sf.col("denials"), limit=sf.lit(limits.denials), words=words)
    return (_rows(strangers, "many_denials", "denials", refused), _many_networks(networks, limits))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    value: Column
    limit: Column
    words: Column


def _unusual_volume(held: DataFrame, volume: str, limits: Limits) -> DataFrame:
    """Hold each day of a recipient against the median of its days before."""
    before = f"{volume}_before"
    known = held.where(sf.size(before) >= limits.least_history).withColumn("median", _median(before))
    known = known.withColumn("away", sf.expr(f"transform({before}, day -> abs(day - median))"))
    threshold = sf.greatest(
        sf.lit(float(getattr(limits, volume))),
        sf.col("median") * limits.times_median,
        sf.col("median") + _median("away") * limits.deviations,
    )
    known = known.withColumn("limit", threshold)
    words = sf.format_string(
        "%s took %s %s, more than %s: its median of %d days before is %s",
        *("recipient", _amount(volume, volume), sf.lit(_VOLUMES[volume]), _amount("limit", volume)),
        *(sf.size(before), _amount("median", volume)),
    )
    unusual = known.where(sf.col(volume) > sf.col("limit"))
    measured = _Measured(value=sf.col(volume), limit=sf.col("limit"), words=words)
    return _rows(unusual, "unusual_volume", volume, measured)


def _many_denials(daily: DataFrame, limits: Limits) -> DataFrame:
    part = sf.col("requests") * limits.denied_share
    held = daily.withColumn("limit", sf.greatest(sf.lit(float(limits.denials)), part))
    words = sf.format_string(
        "%s was refused %d of %d requests; from %.0f on that is worth a look",
        *("recipient", "denials", "requests", sf.ceil("limit").cast("double")),
    )
    many = held.where(sf.col("denials") >= sf.col("limit"))
    measured = _Measured(value=sf.col("denials"), limit=sf.col("limit"), words=words)
    return _rows(many, "many_denials", "denials", measured)


def _many_networks(networks: DataFrame, limits: Limits) -> DataFrame:
    known = networks.where(sf.col("recipient") != "").groupBy("day", "recipient")
    daily = known.agg(
        sf.count("network").alias("networks"), sf.array_sort(sf.collect_list("network")).alias("names")
    )
    before = _days_before(limits.history_days)
    held = daily.withColumn("before", sf.collect_list("networks").over(before))
    usual = sf.coalesce(_median("before") * limits.times_networks, sf.lit(0.0))
    held = held.withColumn("limit", sf.greatest(sf.lit(float(limits.networks)), usual))
    words = sf.format_string(
        "tokens of %s were used from %d networks, more than %.0f: %s%s",
        *("recipient", "networks", "limit", sf.array_join(sf.slice("names", 1, _NAMED), ", ")),
        sf.when(sf.col("networks") > _NAMED, ", …").otherwise(""),
    )
    many = held.where(sf.col("networks") > sf.col("limit"))
    measured = _Measured(value=sf.col("networks"), limit=sf.col("limit"), words=words)
    return _rows(many, "many_networks", "networks", measured)


def _rows(frame: DataFrame, rule: str, measure: str, measured: _Measured) -> DataFrame:
    given = set(frame.columns)
    return frame.select(
        "day",
        sf.lit(rule).alias("rule"),
        "recipient",
        *(sf.col(name) if name in given else sf.lit("").alias(name) for name in _SUBJECT),
        sf.lit(measure).alias("measure"),
        measured.value.cast("double").alias("measured"),
        measured.limit.cast("double").alias("threshold"),
        measured.words.alias("explanation"),
    )


def _days_before(days: int) -> WindowSpec:
    number = sf.unix_date("day").cast("bigint")
    return Window.partitionBy("recipient").orderBy(number).rangeBetween(-days, -1)


def _median(column: str) -> Column:
    """Return the median of a list of numbers; null of an empty one."""
    return sf.expr(
        f"CASE WHEN size({column}) > 0 THEN (double(array_sort({column})[(size({column}) - 1) DIV 2]) "
        f"+ double(array_sort({column})[size({column}) DIV 2])) / 2 END"
    )


def _amount(column: str, volume: str) -> Column:
    value = sf.col(column).cast("double")
    if volume != "bytes_granted":
        return sf.format_number(value, 0)
    text = sf.format_string("%.0f bytes", value)
    for unit, size in _UNITS:
        text = sf.when(value >= size, sf.format_string(f"%.1f {unit}", value / size)).otherwise(text)
    return text
