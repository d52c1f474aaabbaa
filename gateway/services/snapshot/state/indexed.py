"""Files that lie in an index and not in memory, and which of them commits have ended since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from gateway.services.snapshot.index.shelf import Index
from gateway.services.snapshot.log.reconcile import are_among, keys_of
from gateway.services.snapshot.state.segments import Segments

# Of a key that is gone, with its texts.
_BYTES_PER_KEY: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Indexed:
    """The files of an index that are still live."""

    index: Index
    # By block, the keys of files that are not any more, in the columns of ``log.schema.REMOVED``.
    gone: Mapping[int, pl.DataFrame] = field(default_factory=dict, repr=False)
    num_files: int
    size: int
    vectors: int
    # By block, what is rendered of it is found again by; made when it is first asked for.
    segments: dict[int, Segments] = field(default_factory=dict, repr=False)

    @property
    def memory(self) -> int:
        return self.index.memory + _BYTES_PER_KEY * self.num_gone

    @property
    def num_gone(self) -> int:
        return sum(keys.height for keys in self.gone.values())

    def live(self, number: int, frame: pl.DataFrame) -> pl.Series | None:
        """Return which rows of a block are live; None: all of them."""
        gone = self.gone.get(number)
        return None if gone is None else ~are_among(keys_of(frame), gone)

    def segments_of(self, number: int) -> Segments:
        return self.segments.setdefault(number, Segments())
