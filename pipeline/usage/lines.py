"""From the lines of segments to events with types, or to the reason why a line is none."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pipeline.usage.odd_line import EARLIEST, LATEST, LONGEST, reader
from pipeline.usage.schema import COUNTS, EVENTS, SCHEMA_VERSION, TEXTS, columns_of

# How a gateway writes an event, to the letter: nothing is left to check but whether its times are times.
_TEXT: Final = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"'
_COUNT: Final = r"(?:0|[1-9]\d{0,17})"
_TIME: Final = r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"'
_FORMS: Final = (
    ("schema_version", str(SCHEMA_VERSION)),
    ("id", r'"[^"\\\x00-\x1f]++"'),
    ("replica", _TEXT),
    ("at", _TIME),
    *((name, _TEXT) for name in ("kind", "operation", "outcome", "principal", "actor")),
    *((name, _TEXT) for name in ("share", "schema", "table", "table_id")),
    ("version", f"(?:null|{_COUNT})"),
    ("mode", _TEXT),
    ("locations", rf"\[(?:{_TEXT}(?:,{_TEXT})*+)?\]"),
    ("credential_id", _TEXT),
    ("expires_at", f"(?:null|{_TIME})"),
    *((name, _COUNT) for name in ("files", "file_bytes")),
    *((name, _TEXT) for name in ("request_id", "remote", "user_agent")),
    ("duration_ms", _COUNT),
)
_REGULAR: Final = r"^\{" + ",".join(f'"{name}":{form}' for name, form in _FORMS) + r"\}$"
_REGULAR_FIELDS: Final = ", ".join(
    (
        *(f"`{name}` STRING" for name in (*TEXTS, "at", "expires_at")),
        *(f"{name} BIGINT" for name in (*COUNTS, "version", "schema_version")),
        "locations ARRAY<STRING>",
    )
)


def parse_lines(lines: DataFrame) -> DataFrame:
    """Return the events of lines (``value``), each with ``reason``, null where there is nothing wrong.

    Whatever else the lines come with stays beside them.
    """
    beside = [name for name in lines.columns if name != "value"]
    is_regular = (sf.length("value") <= LONGEST) & sf.col("value").rlike(_REGULAR)
    regular = _read_regular(lines.where(is_regular))
    odd = _read_odd(lines.where(~is_regular))
    names = [*columns_of("events"), "reason", "detail", "value", *beside]
    return regular.select(names).unionByName(odd.select(names))


def _read_regular(lines: DataFrame) -> DataFrame:
    read = lines.withColumn("event", sf.from_json("value", _REGULAR_FIELDS))
    no_time = _time(sf.col("event.at")).isNull()
    wrong_end = sf.col("event.expires_at").isNotNull() & _time(sf.col("event.expires_at")).isNull()
    checked = read.select(
        *(name for name in lines.columns),
        *(sf.col(f"event.{name}").alias(name) for name in (*TEXTS, *COUNTS, "version", "schema_version")),
        "event.locations",
        _time(sf.col("event.at")).alias("at"),
        _time(sf.col("event.expires_at")).alias("expires_at"),
        sf.create_map().cast("map<string,string>").alias("more"),
        sf.when(no_time, "missing_time").when(wrong_end, "bad_type").alias("reason"),
        sf.when(no_time, "at").when(wrong_end, "expires_at").alias("detail"),
    )
    return checked.withColumn("day", sf.to_date("at"))


def _read_odd(lines: DataFrame) -> DataFrame:
    """Look at lines field by field: those of other versions, of other writers, and what is no event."""
    # Without Arrow, which a cluster need not have.
    read = sf.udf(reader(), f"{EVENTS}, reason STRING, detail STRING", useArrow=False)
    event = read(sf.col("value").cast("binary"))
    return lines.withColumn("event", event).select(*lines.columns, "event.*")


def _time(text: Column) -> Column:
    """Return the time that a text gives; null for what is none, or of no gateway's days."""
    time = text.try_cast("timestamp")
    return sf.when((time >= sf.lit(EARLIEST)) & (time < sf.lit(LATEST)), time)
