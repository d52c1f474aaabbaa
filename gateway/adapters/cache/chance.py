"""Chance, for what should not happen everywhere at once; nothing secret depends on it."""

from __future__ import annotations

import random
from collections.abc import Callable

# Returns a number from 0 up to, and without, 1.
Chance = Callable[[], float]

chance: Chance = random.random
