"""The nearest right name for a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

LIKELY: Final = 0.6
# As near as two letters that changed places in a word of four.
NEAR_MISS: Final = 0.75
_LONGEST: Final = 100


def nearest(name: str, known: Iterable[str], cutoff: float = LIKELY) -> str:
    """Return the known name that is most like this one, or an empty text."""
    return _nearest(name, tuple(known), cutoff) if len(name) <= _LONGEST else ""


# A slip of the pen comes back in every entry that was written by the same template.
@lru_cache(maxsize=256)
def _nearest(name: str, known: tuple[str, ...], cutoff: float) -> str:
    folded = {_fold(candidate): candidate for candidate in known}
    matches = get_close_matches(_fold(name), folded, n=1, cutoff=cutoff)
    return folded[matches[0]] if matches else ""


def _fold(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
