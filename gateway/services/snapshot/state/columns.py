"""Columns that are made out of a snapshot's rows when a query first asks for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final, TypeVar

import polars as pl

Key = TypeVar("Key", bound=Hashable)

# A refresh appends a chunk; reading many small ones costs more than joining them now and then.
_MAX_CHUNKS: Final = 32


class Columns:
    """Made once each and kept: for rows that are only ever appended to, by any number of threads."""

    def __init__(self, made: Mapping[Hashable, pl.DataFrame] | None = None) -> None:
        self._made: dict[Hashable, pl.DataFrame] = dict(made or {})
        # Known in advance, as an estimate is not free for texts.
        self._memory = sum(map(_memory_of, self._made.values()))
        self._making = threading.Lock()

    def grown(self) -> Columns:
        """Return the columns for rows that begin with these: what is there is shared, the rest is made."""
        return Columns(self._made.copy())

    @property
    def memory(self) -> int:
        """Return the bytes of all columns, whether they are shared or not."""
        return self._memory

    def has(self, key: Hashable, height: int) -> bool:
        found = self._made.get(key)
        return found is not None and found.height >= height

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
        if not all(self.has(key, height) for key in keys):
            # Others wait, and find it made.
            with self._making:
                self._make(keys, height, make)
        return {key: self._made[key].head(height) for key in keys}

    def _make(
        self,
        keys: Sequence[Key],
        height: int,
        make: Callable[[Sequence[Key], int, int], Mapping[Key, pl.DataFrame]],
    ) -> None:
        by_height: dict[int, list[Key]] = {}
        for key in dict.fromkeys(keys):
            if not self.has(key, height):
                found = self._made.get(key)
                by_height.setdefault(0 if found is None else found.height, []).append(key)
        for offset, missing in by_height.items():
            for key, frame in make(missing, offset, height - offset).items():
                self._made[key] = _appended(self._made.get(key), frame)
        self._memory = sum(map(_memory_of, self._made.values()))


def _memory_of(frame: pl.DataFrame) -> int:
    return int(frame.estimated_size())


def _appended(before: pl.DataFrame | None, frame: pl.DataFrame) -> pl.DataFrame:
    if before is None:
        return frame.rechunk()
    joined = pl.concat([before, frame], rechunk=False)
    return joined.rechunk() if joined.n_chunks() > _MAX_CHUNKS else joined
