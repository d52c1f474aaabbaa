"""What texts take as objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

# However short it is.
_BYTES_PER_TEXT: Final = 64


def memory_of(texts: Iterable[str]) -> int:
    return sum(len(text) + _BYTES_PER_TEXT for text in texts)
