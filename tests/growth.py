"""How the CPU time of a function grows with the size of its input."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

# Four times the input takes 4 times as long if the function is linear, and 16 times if it is quadratic.
_LARGER: Final = 4
_MOST: Final = 10
# Seconds that are noise.
_NOISE: Final = 0.1
# Another program on the same core may slow the larger input only.
_TRIES: Final = 3


def grows_linearly(work: Callable[[int], object], size: int) -> bool:
    """True if an input of a size takes little more than four times the CPU time of a quarter of it."""
    return any(_is_linear(work, size) for _ in range(_TRIES))


def _is_linear(work: Callable[[int], object], size: int) -> bool:
    smaller = _cpu_seconds(work, size // _LARGER)
    return _cpu_seconds(work, size) <= _MOST * smaller + _NOISE


def _cpu_seconds(work: Callable[[int], object], size: int) -> float:
    before = time.process_time()
    work(size)
    return time.process_time() - before
