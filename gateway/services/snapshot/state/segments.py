"""Fixed stretches of a snapshot's rows, by which what is made of them is found again."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Final

# How many rows a segment has, live or not: as many as a page may have.
SEGMENT_ROWS: Final = 1000

_identities: Final = count()


class Segments:
    """Gives each segment an identity that changes with its rows, and with which of them are live.

    A commit appends rows and ends others: all but the segments that it touches keep theirs.
    """

    def __init__(self, known: dict[int, int] | None = None) -> None:
        self._known = known or {}

    def identity(self, number: int) -> int:
        """Return what no other segment of any table has, nor this one after a commit that touches it."""
        return self._known.setdefault(number, next(_identities))

    def grown(self, height: int, touched: Iterable[int]) -> Segments:
        """Return the segments of rows that begin with these ``height`` ones, some of them ended since."""
        # A copy: whoever reads the version before gives identities to segments of its own.
        known = dict(self._known)
        # The last one, where it is not full, is appended to.
        for number in (*touched, height // SEGMENT_ROWS):
            known.pop(number, None)
        return Segments(known)
