"""When the credentials of one key turn: its windows, and how much of a life is left at their ends."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from gateway.domain.window import CREDENTIAL_PARTS, EPOCH, window_at

# An old credential is handed out in need only with this much left, or with what a fresh one may end with.
STALE_LEAST: Final = timedelta(minutes=5)

_SECOND: Final = timedelta(seconds=1)
# The part of a window in which the credential of the next one may already be asked for.
_AHEAD: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A window of a key."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """The windows of one key.

    What is asked for ahead of its window must still have ``least`` left at the window's end. So the time
    ahead is taken from the window's width, and together they are the window that the life allows.
    """

    width: timedelta
    ahead: timedelta
    offset: timedelta
    # Nothing is handed out with less than this left, unless the provider gives no more.
    least: timedelta
    stale_least: timedelta

    def turn_at(self, now: datetime) -> Turn:
        start = now - (now - EPOCH - self.offset) % self.width
        return Turn(start=start, end=start + self.width)


def rhythm_of(key: bytes, life: timedelta) -> Rhythm:
    """Return the windows of a key; keys are offset, so that they do not all turn at once."""
    whole = _whole(life)
    ahead = whole // _SECOND // _AHEAD * _SECOND
    width = whole - ahead
    offset = int.from_bytes(hashlib.sha256(key).digest()[:8]) % (width // _SECOND) * _SECOND
    least = life - whole
    return Rhythm(width=width, ahead=ahead, offset=offset, least=least, stale_least=min(STALE_LEAST, least))


def least_of(life: timedelta) -> timedelta:
    """Return with how much left a credential of such a life is handed out at least, while all is well."""
    return life - _whole(life)


def _whole(life: timedelta) -> timedelta:
    widest = window_at(EPOCH, life, CREDENTIAL_PARTS, b"")
    return widest.end - widest.start
