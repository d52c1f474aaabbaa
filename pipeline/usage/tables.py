"""The tables of usage as Delta tables: made when they are not there, added to, and replaced by days."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pipeline.usage.schema import TABLES, types_of

_UNPARTITIONED: Final = frozenset({"quarantine"})
# With a row for each event or grant: their days are written by all of a cluster, in files of a good size.
_LARGE: Final = frozenset({"events", "credential_ledger"})
_LARGE_FILES: Final = "TBLPROPERTIES ('delta.autoOptimize.optimizeWrite' = 'true')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What a run of the job takes up at once, and is the same whenever it is taken up again."""

    # The checkpoint's own name: one that is made anew counts its batches anew.
    query: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTables:
    """The tables below a location, by name."""

    spark: SparkSession
    # As Spark spells it.
    url: str

    def place(self, name: str) -> str:
        return f"{self.url.rstrip('/')}/{name}"

    def create(self) -> None:
        """Make the tables that are not there, so that whoever reads finds all of them."""
        for name, columns in TABLES.items():
            partitioned = "" if name in _UNPARTITIONED else "PARTITIONED BY (day)"
            properties = _LARGE_FILES if name in _LARGE else ""
            self.spark.sql(
                f"CREATE TABLE IF NOT EXISTS delta.`{self.place(name)}` ({columns}) USING delta "
                f"{partitioned} {properties}"
            )

    def read(self, name: str, days: Collection[date] | None = None) -> DataFrame:
        """Return a table with all columns that this job knows; an older table lacks some of them."""
        frame = self.spark.read.format("delta").load(self.place(name))
        if days is not None:
            frame = frame.where(sf.col("day").isin(sorted(days)))
        there = set(frame.columns)
        known = [
            sf.col(column) if column in there else sf.lit(None).cast(kind).alias(column)
            for column, kind in types_of(name).items()
        ]
        return frame.select(known)

    def append(self, name: str, rows: DataFrame, batch: Batch) -> None:
        """Add rows that a batch brings; nothing where they were added before. Two at once conflict."""
        writer = rows.write.format("delta").mode("append").option("mergeSchema", "true")
        writer = writer.option("txnAppId", f"{batch.query}-{name}").option("txnVersion", str(batch.number))
        writer.save(self.place(name))

    def replace_days(self, name: str, rows: DataFrame, days: Sequence[date]) -> None:
        """Put rows in the place of all that a table has of some days."""
        self._replace(name, rows, f"day IN ({', '.join(_literal(day) for day in sorted(days))})")

    def replace_since(self, name: str, rows: DataFrame, first: date) -> None:
        """Put rows in the place of all that a table has of a day and later ones."""
        self._replace(name, rows, f"day >= {_literal(first)}")

    def _replace(self, name: str, rows: DataFrame, where: str) -> None:
        # A day of a small table is one file.
        parts = rows if name in _LARGE else rows.repartition("day")
        writer = parts.write.format("delta").mode("overwrite").option("mergeSchema", "true")
        writer.option("replaceWhere", where).save(self.place(name))


def _literal(day: date) -> str:
    return f"DATE'{day.isoformat()}'"
