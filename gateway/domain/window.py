"""Expiration windows: what is asked for within one window shares one URL or credential."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

# A window is this part of a life: what is served last in a window still has the rest of it.
URL_PARTS: Final = 4
CREDENTIAL_PARTS: Final = 2

# Clients renew a quarter of an hour ahead; what has less left than this is renewed over and over.
LEAST_LEFT: Final = timedelta(minutes=20)

_SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Window:
    """A span of time, and when that which is made in it expires."""

    start: datetime
    end: datetime
    expires_at: datetime


def window_at(now: datetime, life: timedelta, parts: int, key: bytes) -> Window:
    """Return the window around ``now`` for a key; keys are offset, so that they do not all turn at once."""
    # Whole seconds throughout: signatures carry seconds, and a URL must not outlive what we report.
    width = _width(life, parts) // _SECOND
    offset = int.from_bytes(hashlib.sha256(key).digest()[:8]) % width
    elapsed = (now - EPOCH) // _SECOND
    start = EPOCH + ((elapsed - offset) // width * width + offset) * _SECOND
    return Window(start=start, end=start + width * _SECOND, expires_at=start + life // _SECOND * _SECOND)


def _width(life: timedelta, parts: int) -> timedelta:
    width = life / parts
    if life > LEAST_LEFT:
        width = min(width, life - LEAST_LEFT)
    return max(width, _SECOND)
