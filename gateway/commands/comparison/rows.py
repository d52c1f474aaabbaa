"""A digest of a table's rows, the same in whatever order and files they come."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Final

import polars as pl

_WRAP: Final = 1 << 64
_SEEDS: Final = (1, 2)
# Types under which equal values have equal bits, whichever width a file's writer chose.
_TYPES: Final[Mapping[str, pl.DataType]] = {
    "byte": pl.Int64(),
    "short": pl.Int64(),
    "integer": pl.Int64(),
    "long": pl.Int64(),
    "float": pl.Float32(),
    "double": pl.Float64(),
    "string": pl.String(),
    "binary": pl.Binary(),
    "boolean": pl.Boolean(),
    "date": pl.Date(),
    "timestamp": pl.Datetime("us", "UTC"),
    "timestamp_ntz": pl.Datetime("us"),
}
# Keeps a row a row in a file that has none of the columns.
_ONE_A_ROW: Final = (pl.int_range(pl.len()) * 0).alias("")


class UnreadableFile(Exception):
    """A file that is not the parquet file it should be."""


@dataclass(frozen=True, slots=True)
class RowDigest:
    """How many rows there are, and two sums of their hashes."""

    rows: int = 0
    first: int = 0
    second: int = 0

    def __add__(self, other: RowDigest) -> RowDigest:
        return RowDigest(
            self.rows + other.rows, (self.first + other.first) % _WRAP, (self.second + other.second) % _WRAP
        )


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    # None for a type that is taken as the file has it: decimals, arrays, maps and structs.
    type: pl.DataType | None


def columns_of(metadata: Mapping[str, Any]) -> tuple[Column, ...]:
    """Return the columns of a table, partition columns included, by name."""
    schema = json.loads(metadata["schemaString"])
    partitions = set(metadata.get("partitionColumns") or ())
    columns = []
    for field in schema["fields"]:
        # Partition values are compared as the text that the servers give.
        kind = "string" if field["name"] in partitions else field["type"]
        columns.append(Column(field["name"], _TYPES.get(kind) if isinstance(kind, str) else None))
    return tuple(sorted(columns, key=lambda column: column.name))


def digest_file(
    path: Path, columns: Sequence[Column], partition_values: Mapping[str, str | None]
) -> RowDigest:
    """Read a parquet file, a part at a time, and return the digest of its rows."""
    try:
        frame = pl.scan_parquet(path)
        present = frame.collect_schema()
        row = pl.struct(_ONE_A_ROW, *(_expression(column, present, partition_values) for column in columns))
        sums = [row.hash(seed).sum().alias(str(seed)) for seed in _SEEDS]
        rows, first, second = frame.select(pl.len().alias("rows"), *sums).collect(engine="streaming").row(0)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as exc:
        raise UnreadableFile(type(exc).__name__) from exc
    return RowDigest(rows, first, second)


def total(digests: Iterable[RowDigest]) -> RowDigest:
    return reduce(RowDigest.__add__, digests, RowDigest())


def _expression(column: Column, present: pl.Schema, partition_values: Mapping[str, str | None]) -> pl.Expr:
    if column.name in partition_values:
        # An empty string and a null are the same partition.
        value = pl.lit(partition_values[column.name] or None, pl.String())
    elif column.name in present:
        value = pl.col(column.name)
        if column.type is not None:
            value = _cast(value, present[column.name], column.type)
    else:
        # A file that is older than the column.
        value = pl.lit(None, column.type or pl.Null())
    return value.alias(column.name)


def _cast(value: pl.Expr, found: pl.DataType, wanted: pl.DataType) -> pl.Expr:
    if isinstance(found, pl.Datetime) and isinstance(wanted, pl.Datetime) and wanted.time_zone:
        # Instants are instants, whether the file marks them as such or not.
        value = (
            value.dt.replace_time_zone("UTC") if not found.time_zone else value.dt.convert_time_zone("UTC")
        )
    return value.cast(wanted)
