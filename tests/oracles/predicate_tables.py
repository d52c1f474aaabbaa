"""Random tables, the same ones in every run: rows in files, and a log with statistics by Delta's rules."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote as quote_path

from gateway.domain.log import DIRECTORY
from tests.oracles.predicate_values import BINARY, KINDS, Kind

HAND, DELTALAKE, POLARS = "hand", "deltalake", "polars"
# A log that is written by hand has what those libraries never write.
_WRITERS = (HAND, HAND, HAND, DELTALAKE, DELTALAKE, POLARS)
_ZONES = ("UTC", "America/Los_Angeles", "Asia/Kolkata", "Pacific/Kiritimati")
_NAMES = ("c0", "größe", "end", "Mixed_Case", "from")
# Only a mapped column may be called so.
_MAPPED_NAMES = ("a b", "semi;colon", "tick`tick", "quo'te", "x=y", "dot.ted")
_MAX_PATH = 60

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    path: tuple[str, ...]
    kind: Kind
    # Its values in the table, and more, as they compare.
    pool: tuple[Any, ...]
    partition: bool = False
    # The names that files and their statistics have for it.
    physical: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    rows: tuple[Row, ...]
    # Rows that are counted in the statistics, and that a deletion vector takes out.
    deleted: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomTable:
    number: int
    writer: str
    # The zone of the session that reads and writes, which no hint and no log tells.
    zone: str
    mapped: bool
    columns: tuple[Column, ...]
    files: tuple[File, ...]

    def to_plain(self) -> dict[str, Any]:
        """Return what DuckDB is told of the table: its types, and its values as texts."""
        columns = [
            {"path": list(column.path), "type": column.kind.duckdb, "partition": column.partition}
            for column in self.columns
        ]
        rows = [[index, *self._texts(row)] for index, file in enumerate(self.files) for row in file.rows]
        return {"writer": self.writer, "zone": self.zone, "columns": columns, "rows": rows}

    def _texts(self, row: Row) -> list[str | None]:
        values = zip(row, self.columns, strict=True)
        return [None if value is None else column.kind.text(value) for value, column in values]


def make_table(seed: str, number: int) -> RandomTable:
    chance = Random(f"{seed}/{number}")
    writer = _WRITERS[number % len(_WRITERS)]
    mapped = writer == HAND and chance.random() < 0.4
    columns = tuple(_make_columns(chance, writer, mapped=mapped))
    files = tuple(_make_file(chance, columns, writer) for _ in range(chance.randint(6, 12)))
    zone = chance.choice(_ZONES)
    return RandomTable(number=number, writer=writer, zone=zone, mapped=mapped, columns=columns, files=files)


def write_log(table: RandomTable, directory: Path, seed: str) -> None:
    """Write the log by hand, with one commit; its statistics are as one writer or another has them."""
    chance = Random(f"{seed}/{table.number}/log")
    adds = [_to_add(chance, table, index, file) for index, file in enumerate(table.files)]
    actions = [{"protocol": _PROTOCOL}, {"metaData": _to_metadata(table)}, *({"add": add} for add in adds)]
    (directory / DIRECTORY).mkdir(parents=True)
    lines = "".join(json.dumps(action) + "\n" for action in actions)
    (directory / DIRECTORY / f"{0:020}.json").write_text(lines)


def _make_columns(chance: Random, writer: str, *, mapped: bool) -> list[Column]:
    kinds = chance.sample(KINDS, 8)
    names = chance.sample(_NAMES + _MAPPED_NAMES if mapped else _NAMES, 3)
    paths = [*((name,) for name in names), ("s", "x"), ("s", "deep", "y"), ("bytes",), ("p",), ("q",)]
    found = []
    for path, drawn in zip(paths, kinds, strict=True):
        kind = BINARY if path == ("bytes",) else drawn
        partition = path in {("p",), ("q",)}
        physical = tuple(f"col-{chance.randrange(16**8):08x}" for _ in path) if mapped else path
        pool = _make_pool(chance, kind, is_path=partition and writer != HAND)
        found.append(Column(path=path, kind=kind, pool=pool, partition=partition, physical=physical))
    return _in_one_struct(found)


def _in_one_struct(columns: Sequence[Column]) -> list[Column]:
    """Give the fields of a struct one physical name for it."""
    names = {column.path[0]: column.physical[0] for column in columns}
    return [replace(column, physical=(names[column.path[0]], *column.physical[1:])) for column in columns]


def _make_pool(chance: Random, kind: Kind, *, is_path: bool) -> tuple[Any, ...]:
    values = [value for value in kind.draw(chance) if not is_path or _is_writable(value)]
    return tuple(sorted(values, key=kind.order))


def _is_writable(value: Any) -> bool:
    """Tell whether the libraries write a partition of the value: they make a directory of it."""
    match value:
        case str():
            return "\x00" not in value and len(quote_path(value)) <= _MAX_PATH
        case Decimal():
            # Of one below zero they put a second sign behind the point.
            return value >= 0
        case float():
            # In all its digits, be they hundreds.
            return not math.isfinite(value) or len(f"{Decimal(value):f}") <= _MAX_PATH
        case _:
            return True


def _make_file(chance: Random, columns: Sequence[Column], writer: str) -> File:
    windows = [_window(chance, column) for column in columns]
    fixed = [chance.choice(window) for window in windows]

    def make_row() -> Row:
        values = zip(columns, windows, fixed, strict=True)
        return tuple(value if column.partition else chance.choice(near) for column, near, value in values)

    rows = tuple(make_row() for _ in range(chance.randint(1, 5)))
    deleted = chance.randint(0, 2) if writer == HAND and chance.random() < 0.2 else 0
    return File(rows=rows, deleted=tuple(make_row() for _ in range(deleted)))


def _window(chance: Random, column: Column) -> list[Any]:
    """Return what a file has of a column: mostly values that are near each other, as in a real table."""
    pool, nature = column.pool, chance.random()
    if nature < 0.08:
        return [None]
    width = chance.choice([1, 2, 4]) if nature < 0.85 else len(pool)
    start = chance.randrange(len(pool))
    rare = [value for value in (None, *column.kind.odd) if chance.random() < 0.25]
    return [*pool[start : start + width], *rare]


def _to_add(chance: Random, table: RandomTable, index: int, file: File) -> dict[str, Any]:
    add = {
        "path": f"{index}.parquet",
        "size": 1000 + index,
        "modificationTime": 0,
        "dataChange": True,
        "partitionValues": _partition_values(chance, table, file),
        "stats": _stats_text(chance, table, file),
    }
    if file.deleted:
        add["deletionVector"] = {
            "storageType": "u",
            "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
            "offset": 4,
            "sizeInBytes": 40,
            "cardinality": len(file.deleted),
        }
    return add


def _partition_values(chance: Random, table: RandomTable, file: File) -> dict[str, str | None]:
    found = {}
    for column, value in zip(table.columns, file.rows[0], strict=True):
        if column.partition:
            texts = [None] if value is None else column.kind.partition(value, table.zone)
            found[column.physical[0]] = chance.choice(texts)
    return found


def _stats_text(chance: Random, table: RandomTable, file: File) -> str | None:
    if chance.random() < 0.04:
        return None
    rows = [*file.rows, *file.deleted]
    stats: dict[str, Any] = {"numRecords": len(rows), "tightBounds": not file.deleted}
    for index, column in enumerate(table.columns):
        if not column.partition and chance.random() > 0.04:
            for name, value in _stated(chance, column.kind, [row[index] for row in rows]).items():
                _put(stats.setdefault(name, {}), column.physical, value)
    return _to_json(stats, is_ascii=chance.random() < 0.5)


def _stated(chance: Random, kind: Kind, values: Sequence[Any]) -> Mapping[str, Any]:
    """Return minimum, maximum and the number of nulls, as one writer or another states them."""
    present = [value for value in values if value is not None]
    # NaN is the largest to Spark, and to others no number that could be one.
    numbers = [value for value in present if value == value]  # noqa: PLR0124 (what only NaN is not)
    compared = chance.choice([present, numbers])
    low, high = None, None
    if compared:
        ends = min(compared, key=kind.order), max(compared, key=kind.order)
        low, high = chance.choice(kind.stated(*ends))
    found = {"minValues": low, "maxValues": high, "nullCount": len(values) - len(present)}
    left_out = chance.choice([*[""] * 30, *found])
    return {name: value for name, value in found.items() if value is not None and name != left_out}


def _put(tree: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def _to_json(stats: Mapping[str, Any], *, is_ascii: bool) -> str:
    # A decimal has more digits than a float, and JSON has all of them.
    return re.sub(r'"digits:([^"]*)"', r"\1", json.dumps(stats, ensure_ascii=is_ascii))


def _to_metadata(table: RandomTable) -> dict[str, Any]:
    return {
        "id": f"table-{table.number}",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(_struct(table.columns, 0)),
        "partitionColumns": [column.path[0] for column in table.columns if column.partition],
        "configuration": {"delta.columnMapping.mode": "name"} if table.mapped else {},
    }


def _struct(columns: Sequence[Column], depth: int) -> dict[str, Any]:
    """Return the type of a struct by the columns in it, whose names are known to a depth."""
    groups: dict[str, list[Column]] = {}
    for column in columns:
        groups.setdefault(column.path[depth], []).append(column)
    return {
        "type": "struct",
        "fields": [_field(name, group, depth) for name, group in groups.items()],
    }


def _field(name: str, group: Sequence[Column], depth: int) -> dict[str, Any]:
    first = group[0]
    is_leaf = len(first.path) == depth + 1
    notes = {"delta.columnMapping.physicalName": first.physical[depth], "delta.columnMapping.id": 1}
    return {
        "name": name,
        "type": first.kind.delta if is_leaf else _struct(group, depth + 1),
        "nullable": True,
        "metadata": notes if first.physical != first.path else {},
    }


_PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["columnMapping", "deletionVectors", "timestampNtz"],
    "writerFeatures": ["columnMapping", "deletionVectors", "timestampNtz"],
}
