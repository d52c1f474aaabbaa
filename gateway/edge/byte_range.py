"""The Range header, as far as files are served by it: one range of bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_RANGE: Final = re.compile(
    r"bytes=[ \t]*(?:(\d{1,99})-(\d{1,99})?|-(\d{1,99}))[ \t]*", re.ASCII | re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteRange:
    """Bytes of a file from ``start`` up to, not including, ``end``; empty if outside of the file."""

    start: int
    end: int


def parse_range(header: str, size: int) -> ByteRange | None:
    """Return the part of a file that is asked for; None for the whole.

    Several ranges at once are answered by the whole file, and so is what is not a range, as HTTP has it.
    """
    match = _RANGE.fullmatch(header)
    if match is None:
        return None
    first, last, suffix = match.groups()
    if suffix:
        return ByteRange(start=max(size - int(suffix), 0), end=size)
    if last and int(last) < int(first):
        return None
    return ByteRange(start=int(first), end=min(int(last) + 1, size) if last else size)
