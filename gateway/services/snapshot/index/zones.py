"""The blocks of an index: which keys each holds, and between which values the columns of its files lie."""

from __future__ import annotations

import io
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import polars as pl
from polars.exceptions import PanicException, PolarsError

from gateway.domain.state_key import is_state_key
from gateway.services.snapshot.index.fault import corrupt
from gateway.services.snapshot.index.manifest import Manifest, Stored

# A path, and what identifies its deletion vector: empty without one.
Key = tuple[str, str]

_COLUMNS: Final[Mapping[str, pl.DataType]] = {
    "file": pl.String(),
    "length": pl.Int64(),
    "sha256": pl.String(),
    "rows": pl.Int64(),
    "first_path": pl.String(),
    "first_vector": pl.String(),
    "last_path": pl.String(),
    "last_vector": pl.String(),
    # Of all its files together.
    "size": pl.Int64(),
    # How many of them have a deletion vector.
    "vectors": pl.Int64(),
    # Whether one of them takes a look before it is served: where it lies, or what its vector says.
    "odd": pl.Boolean(),
}
_BOUNDS: Final = ("low", "high", "nulls", "values")
# What a block may claim to have, so that none is more than a few of them.
_MAX_ROWS: Final = 131_072
_MAX_BYTES: Final = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """What is known of a block without reading it."""

    number: int
    stored: Stored
    rows: int
    first: Key
    last: Key
    size: int
    vectors: int


@dataclass(frozen=True, kw_only=True)
class Zones:
    """A row for each block, in the order of their keys."""

    frame: pl.DataFrame = field(repr=False)

    @property
    def height(self) -> int:
        return self.frame.height

    @property
    def memory(self) -> int:
        return 2 * int(self.frame.estimated_size()) + 400 * self.height

    @cached_property
    def _lasts(self) -> Sequence[Key]:
        return list(zip(self.frame["last_path"].to_list(), self.frame["last_vector"].to_list(), strict=True))

    @cached_property
    def _first_paths(self) -> Sequence[str]:
        return self.frame["first_path"].to_list()

    @cached_property
    def _last_paths(self) -> Sequence[str]:
        return self.frame["last_path"].to_list()

    def zone(self, number: int) -> Zone:
        row = self.frame.row(number, named=True)
        return Zone(
            number=number,
            stored=Stored(key=row["file"], size=row["length"], sha256=row["sha256"]),
            rows=row["rows"],
            first=(row["first_path"], row["first_vector"]),
            last=(row["last_path"], row["last_vector"]),
            size=row["size"],
            vectors=row["vectors"],
        )

    def find_start(self, after: Key | None) -> int:
        """Return the first block that may hold a key after one."""
        return 0 if after is None else bisect_right(self._lasts, after)

    def find_blocks(self, path: str) -> range:
        """Return the blocks that may hold a path, which has several keys where it has several vectors."""
        return range(bisect_left(self._last_paths, path), bisect_right(self._first_paths, path))

    def find_all(self, paths: Iterable[str]) -> Sequence[int]:
        """Return the blocks that may hold one of some paths, in their order."""
        return sorted({number for path in paths for number in self.find_blocks(path)})

    def bounds(self, number: int) -> tuple[pl.Series, pl.Series, pl.Series, pl.Series] | None:
        """Return low, high, nulls and values of a typed column; None where there are none."""
        names = [f"{kind}{number}" for kind in _BOUNDS]
        if not all(name in self.frame.columns for name in names):
            return None
        low, high, nulls, values = (self.frame[name] for name in names)
        return low, high, nulls.fill_null(value=True), values.fill_null(value=True)


def read_zones(content: bytes, manifest: Manifest) -> Zones:
    """Return the blocks of an index; raise ``IndexFault`` when they do not make up what it says it is."""
    try:
        frame = pl.read_parquet(io.BytesIO(content))
        known = frame.with_columns(frame[name].cast(dtype) for name, dtype in _COLUMNS.items())
    except (PolarsError, PanicException) as exc:
        raise corrupt("its zones cannot be read") from exc
    _require_whole(known, manifest)
    _require_ordered(known)
    return Zones(frame=known)


def _require_whole(frame: pl.DataFrame, manifest: Manifest) -> None:
    if any(frame[name].has_nulls() for name in _COLUMNS):
        raise corrupt("its zones are not complete")
    totals = {"rows": manifest.num_files, "size": manifest.size, "vectors": manifest.vectors}
    for name, total in totals.items():
        if int(frame[name].cast(pl.Int128).sum()) != total:
            raise corrupt(f"the {name} of its zones do not add up to what it says it has")
    sound = frame["rows"].is_between(1, _MAX_ROWS) & frame["length"].is_between(1, _MAX_BYTES)
    if not sound.all():
        raise corrupt("a block of it is larger than any")
    if not all(map(is_state_key, frame["file"])) or frame["file"].n_unique() < frame.height:
        raise corrupt("a block of it is nowhere, or there twice")


def _require_ordered(frame: pl.DataFrame) -> None:
    keys = [
        list(zip(frame[f"{end}_path"].to_list(), frame[f"{end}_vector"].to_list(), strict=True))
        for end in ("first", "last")
    ]
    firsts, lasts = keys
    if any(first > last for first, last in zip(firsts, lasts, strict=True)):
        raise corrupt("a block of it ends before it begins")
    if any(last >= first for last, first in zip(lasts, firsts[1:], strict=False)):
        raise corrupt("its blocks are not in the order of their keys")
