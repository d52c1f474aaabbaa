"""From events to requests: each counted once, however many events tell of it.

A query by URLs leaves two events: a grant before its first page, with what is on that page, and a closing
event at its end, with all that was handed out, also when it was cut. The closing event counts, with the mode
of its grant. A grant counts by itself where nothing closes it: a credential, whose grant says it all; the
grant of a platform, from the catalog; and a query whose process was killed, of which the first page is all
that is known.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from pipeline.usage.modes import DIR, MODES, NEITHER, URL

# A closing event that comes later than this does not belong to the grant.
LONGEST_ANSWER: Final = "24 HOURS"
# A request as its client named it, at the process that answered it.
_SAME: Final = ("replica", "request_id", "operation", "principal", "share", "schema", "table")
_CATALOG: Final = "catalog."


def with_closings(events: DataFrame) -> DataFrame:
    """Add to each grant when its request was closed (``closed_at``), and when its last URL ends then; to each
    closing event the mode of the grant that it closes (``opened_mode``).

    The events of a day before and after must be among them.
    """
    same = Window.partitionBy(*_SAME).orderBy("at", _is_closing().cast("int"), "id")
    later = same.rowsBetween(Window.currentRow, Window.unboundedFollowing)
    earlier = same.rowsBetween(Window.unboundedPreceding, -1)
    closing = sf.first(sf.when(_is_closing(), sf.struct("at", "expires_at")), ignorenulls=True).over(later)
    # Whatever is behind another closing event is closed already.
    either = sf.when(_is_query() | _is_closing(), sf.struct("at", "kind", "mode"))
    opening = sf.last(either, ignorenulls=True).over(earlier)
    is_opened = _is_closing() & (opening["kind"] == "grant") & _in_time(opening["at"], sf.col("at"))
    is_closed = _is_query() & _in_time(sf.col("at"), closing["at"])
    paired = events.withColumn("closing", sf.when(is_closed, closing))
    paired = paired.withColumn("opened_mode", sf.when(is_opened, opening["mode"]))
    return paired.select(
        *events.columns,
        sf.col("closing.at").alias("closed_at"),
        sf.col("closing.expires_at").alias("closing_expires_at"),
        "opened_mode",
    )


def to_requests(paired: DataFrame) -> DataFrame:
    """Return a row for each request, and for each grant that a closing event counts already."""
    is_grant = sf.col("kind") == "grant"
    counts = _is_closing() | (is_grant & sf.col("closed_at").isNull())
    is_unfinished = _is_query() & sf.col("closed_at").isNull()
    is_well = (sf.lower("outcome") == "ok") & ~is_unfinished
    return paired.where(is_grant | _is_closing()).select(
        *("day", "at", "remote", "duration_ms"),
        *(_name(column) for column in ("share", "schema", "table")),
        sf.col("principal").alias("recipient"),
        _mode().alias("mode"),
        counts.cast("bigint").alias("requests"),
        is_grant.cast("bigint").alias("grants"),
        (is_grant & sf.col("mode").contains(DIR)).cast("bigint").alias("credentials"),
        sf.when(counts, sf.col("files")).otherwise(0).alias("files"),
        sf.when(counts, sf.col("file_bytes")).otherwise(0).alias("bytes_granted"),
        (sf.col("kind") == "denial").cast("bigint").alias("denials"),
        (counts & ~is_well & (sf.col("kind") != "denial")).cast("bigint").alias("failures"),
        sf.when(counts & is_well & (sf.col("kind") != "denial"), sf.col("duration_ms")).alias("latency_ms"),
    )


def _is_closing() -> Column:
    return sf.col("kind").isin("request", "denial")


def _is_query() -> Column:
    """Tell the grants that an event closes: a credential's says it all, whatever is asked under its name."""
    is_of_edge = ~sf.col("operation").startswith(_CATALOG)
    return (sf.col("kind") == "grant") & (sf.col("mode") == URL) & is_of_edge


def _name(column: str) -> Column:
    """Return a name, unless whoever used it is unknown: anybody could make rows of whatever they think of."""
    return sf.when(sf.col("principal") == "", "").otherwise(sf.col(column)).alias(column)


def _in_time(granted: Column, closed: Column) -> Column:
    return closed < granted + sf.expr(f"INTERVAL {LONGEST_ANSWER}")


def _mode() -> Column:
    known = sf.create_map(*(sf.lit(text) for pair in MODES.items() for text in pair))
    by_operation = sf.coalesce(sf.try_element_at(known, sf.col("operation")), sf.lit(NEITHER))
    own = sf.when(sf.col("mode") != "", sf.col("mode"))
    return sf.coalesce(own, sf.col("opened_mode"), by_operation)
