"""Some files of an index, in the order of their keys, as they are held while they are looked at."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl
from polars.exceptions import PanicException, PolarsError

from gateway.errors import GatewayError
from gateway.services.snapshot.index.fault import corrupt
from gateway.services.snapshot.index.manifest import TypedColumn
from gateway.services.snapshot.index.zones import Zone
from gateway.services.snapshot.log.actions import files_of, require_bounded
from gateway.services.snapshot.log.reconcile import keys_of
from gateway.services.snapshot.log.schema import ADD, VECTOR_ID

# Whether what the statistics say is there by type, and how many rows they count.
TYPED: Final = "typed"
RECORDS: Final = "records"
# Followed by the number of a column.
MINIMUM, MAXIMUM, NULLS = "min", "max", "nulls"

_KEYS: Final = ["path", "size", "deletionVector"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    # The columns of ``log.schema.FILES``.
    frame: pl.DataFrame = field(repr=False)
    # What its files' statistics say, by type.
    typed: pl.DataFrame = field(repr=False)
    memory: int

    def parsed(self, columns: Mapping[int, TypedColumn]) -> pl.Series | None:
        """Return the statistics of columns, by number, as a checkpoint has them."""
        known = {number: each for number, each in columns.items() if f"{NULLS}{number}" in self.typed.columns}
        if not known or TYPED not in self.typed.columns:
            return None
        # Where a row has no count of its own, its text is what counts.
        records = self.typed.select(pl.when(pl.col(TYPED)).then(pl.col(RECORDS))).to_series()
        members = [records.alias("numRecords")]
        for kind, name in ((MINIMUM, "minValues"), (MAXIMUM, "maxValues"), (NULLS, "nullCount")):
            tree = _tree({each.path: self.typed[f"{kind}{number}"] for number, each in known.items()})
            members.append(_struct(name, tree))
        return pl.DataFrame(members).to_struct("stats_parsed")


def read_block(zone: Zone, content: bytes) -> Block:
    """Return the files of a block; raise ``IndexFault`` when they are not what the zone says."""
    zone.stored.check(content)
    frame = _read(zone, content, None)
    try:
        adds = frame.select(_conformed(frame[name], dtype) for name, dtype in ADD.items())
        require_bounded(zone.stored.key, adds)
        files = files_of(zone.stored.key, adds)
    except (GatewayError, PolarsError, PanicException) as exc:
        raise corrupt(f"{zone.stored.key} holds what no log does: {exc}") from exc
    _require_zone(zone, files)
    typed = frame.select(pl.col(name) for name in frame.columns if name not in ADD)
    return Block(frame=files, typed=typed, memory=int(files.estimated_size() + typed.estimated_size()))


def read_keys(zone: Zone, content: bytes) -> pl.DataFrame:
    """Return keys, sizes and vectors of the files of a block, for less than all of them take."""
    zone.stored.check(content)
    frame = _read(zone, content, _KEYS)
    _require_zone(zone, frame)
    return frame


def _read(zone: Zone, content: bytes, columns: list[str] | None) -> pl.DataFrame:
    try:
        frame = pl.read_parquet(io.BytesIO(content), columns=columns)
        lacking = [name for name in columns or ADD if name not in frame.columns]
    except (PolarsError, PanicException) as exc:
        raise corrupt(f"{zone.stored.key} cannot be read") from exc
    if lacking:
        raise corrupt(f"{zone.stored.key} has no {lacking[0]}")
    return frame


def _conformed(column: pl.Series, dtype: pl.DataType) -> pl.Series:
    if not isinstance(dtype, pl.Struct):
        return column.cast(dtype)
    members = [column.struct.field(member.name).cast(member.dtype) for member in dtype.fields]
    return pl.DataFrame(members).to_struct(column.name)


def _require_zone(zone: Zone, files: pl.DataFrame) -> None:
    """Refuse rows that are not the zone's: pages would have some of them twice, and others never."""
    keys = keys_of(files).with_columns(pl.col(VECTOR_ID).fill_null(""))
    if files.height != zone.rows or int(files["size"].cast(pl.Int128).sum()) != zone.size:
        raise corrupt(f"{zone.stored.key} has other files than its zone says")
    if keys["path"].has_nulls() or (keys.row(0), keys.row(-1)) != (zone.first, zone.last):
        raise corrupt(f"{zone.stored.key} has other keys than its zone says")
    path, vector = pl.col("path"), pl.col(VECTOR_ID)
    above = (path > path.shift(1)) | ((path == path.shift(1)) & (vector > vector.shift(1)))
    if not keys.select(above.slice(1).all()).item():
        raise corrupt(f"{zone.stored.key} is not in the order of its keys")


def _tree(columns: Mapping[tuple[str, ...], pl.Series]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, column in columns.items():
        members = tree
        for name in path[:-1]:
            members = members.setdefault(name, {})
        members[path[-1]] = column
    return tree


def _struct(name: str, tree: Mapping[str, Any]) -> pl.Series:
    members: Sequence[pl.Series] = [
        _struct(each, below) if isinstance(below, dict) else below.alias(each) for each, below in tree.items()
    ]
    return pl.DataFrame(members).to_struct(name)
