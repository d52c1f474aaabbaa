"""Columns that are made out of a snapshot's rows when a query first asks for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import polars as pl

Key = TypeVar("Key", bound=Hashable)

# A refresh appends a chunk; reading many small ones costs more than joining them now and then.
_MAX_CHUNKS: Final = 32
# What is kept for one snapshot; what was made longest ago makes room for what is asked for now.
_MAX_COLUMNS: Final = 64
_MAX_BYTES: Final = 256 * 1024 * 1024


class Columns:
    """Made once each and kept: for rows that are only ever appended to, by any number of threads."""

    def __init__(
        self,
        made: Mapping[Hashable, _Column] | None = None,
        *,
        max_columns: int = _MAX_COLUMNS,
        max_bytes: int = _MAX_BYTES,
    ) -> None:
        # Never changed but replaced: who reads it needs no lock.
        self._made: Mapping[Hashable, _Column] = made or {}
        self._max_columns = max_columns
        self._max_bytes = max_bytes
        self._making = threading.Lock()
        # Of this version alone, and small beside its rows: it takes no room from the columns.
        self._order: pl.Series | None = None
        self._ordering = threading.Lock()
        # Of how many rows, from the first on, it is known that none names a file of the log.
        self.data_rows = 0

    def grown(self) -> Columns:
        """Return the columns for rows that begin with these: what is there is shared, the rest is made."""
        grown = Columns(self._made, max_columns=self._max_columns, max_bytes=self._max_bytes)
        grown.data_rows = self.data_rows
        return grown

    def clear(self) -> None:
        """Forget all columns and the order, without waiting for any that are being made."""
        self._made = {}
        self._order = None

    @property
    def memory(self) -> int:
        """Return the bytes of all columns, whether they are shared or not."""
        return _total(self._made)

    @property
    def order_memory(self) -> int:
        """Return the bytes of what is never shared."""
        order = self._order
        return 0 if order is None else int(order.estimated_size())

    def find_order(self) -> pl.Series | None:
        """Return the order of the rows, where it has been made."""
        return self._order

    def get_order(self, make: Callable[[], pl.Series]) -> pl.Series:
        """Return the order of the rows, made at the first time."""
        order = self._order
        if order is None:
            with self._ordering:
                order = self._order
                if order is None:
                    order = self._order = make()
        return order

    def has(self, key: Hashable, height: int) -> bool:
        return _has(self._made, key, height)

    def get(
        self,
        keys: Sequence[Key],
        height: int,
        make: Callable[[Sequence[Key], int, int], Mapping[Key, pl.DataFrame]],
    ) -> dict[Key, pl.DataFrame]:
        """Return the columns of these keys, one row for each of ``height`` rows.

        ``make(keys, offset, length)`` makes what is not there yet: several columns at a time, as reading the
        rows is what costs, and of each only the rows that it does not have.
        """
        made = self._made
        if not all(_has(made, key, height) for key in keys):
            # Others wait, and find it made.
            with self._making:
                made = self._make(keys, height, make)
        return {key: made[key].frame.head(height) for key in keys}

    def _make(
        self,
        keys: Sequence[Key],
        height: int,
        make: Callable[[Sequence[Key], int, int], Mapping[Key, pl.DataFrame]],
    ) -> Mapping[Hashable, _Column]:
        """Return all columns, with those of the keys; keep as many of them as there is room for."""
        before = self._made
        by_height: dict[int, list[Key]] = {}
        for key in dict.fromkeys(keys):
            if not _has(before, key, height):
                found = before.get(key)
                by_height.setdefault(0 if found is None else found.frame.height, []).append(key)
        made: dict[Hashable, _Column] = {}
        for offset, missing in by_height.items():
            for key, frame in make(missing, offset, height - offset).items():
                made[key] = _appended(before.get(key), frame)
        self._keep(made, frozenset(keys))
        return {**before, **made}

    def _keep(self, made: Mapping[Hashable, _Column], asked: frozenset[Hashable]) -> None:
        kept = dict(self._made)
        for key, column in made.items():
            others = {other: there for other, there in kept.items() if other != key}
            spare = [other for other in others if other not in asked]
            while spare and not self._fits(others, column):
                del others[spare.pop(0)]
            if self._fits(others, column):
                # At the end, as it was made last.
                kept = {**others, key: column}
        self._made = kept

    def _fits(self, others: Mapping[Hashable, _Column], column: _Column) -> bool:
        return len(others) < self._max_columns and _total(others) + column.memory <= self._max_bytes


@dataclass(frozen=True, slots=True)
class _Column:
    frame: pl.DataFrame
    # Known in advance, as an estimate is not free for texts.
    memory: int


def _has(made: Mapping[Hashable, _Column], key: Hashable, height: int) -> bool:
    found = made.get(key)
    return found is not None and found.frame.height >= height


def _total(made: Mapping[Hashable, _Column]) -> int:
    return sum(column.memory for column in made.values())


def _appended(before: _Column | None, frame: pl.DataFrame) -> _Column:
    if before is None:
        frame = frame.rechunk()
    else:
        frame = pl.concat([before.frame, frame], rechunk=False)
        frame = frame.rechunk() if frame.n_chunks() > _MAX_CHUNKS else frame
    return _Column(frame, int(frame.estimated_size()))
