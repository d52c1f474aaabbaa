"""The credentials of one scope that this process holds, by window."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Final

from gateway.adapters.cache.chance import Chance
from gateway.adapters.cache.key import scope_key
from gateway.adapters.cache.rhythm import Rhythm, Turn, rhythm_of
from gateway.domain.credential import Credential
from gateway.domain.scope import Scope
from gateway.domain.window import EPOCH

# What Python's objects take besides the texts, by measurement and rounded up.
_LINE_BYTES: Final = 2500
_HELD_BYTES: Final = 1000
# The window before, this one and the next.
_MOST_HELD: Final = 3


@dataclass(frozen=True, slots=True)
class Held:
    """A credential, and the window that it was made for."""

    credential: Credential
    turn: Turn
    # It may be handed out in its window until then.
    good_until: datetime


@dataclass(slots=True, kw_only=True, eq=False)
class Line:
    """What is handed out for a scope; ``hot`` without any further thought, from then until then."""

    # Of the storage's settings that the key was made with.
    fingerprint: bytes = field(repr=False)
    key: bytes = field(repr=False)
    rhythm: Rhythm
    hot: Credential | None = field(default=None, repr=False)
    hot_from: datetime = EPOCH
    hot_until: datetime = EPOCH
    # When to ask for the next window's credential, or to ask again.
    refresh_at: datetime = EPOCH
    # By the monotonic clock: while an old credential does, the provider is not asked again before.
    paused_until: float = 0.0
    _held: dict[datetime, Held] = field(default_factory=dict, repr=False)

    def find(self, turn: Turn, now: datetime) -> Held | None:
        """Return what may be handed out in this window."""
        held = self._held.get(turn.end)
        return held if held is not None and now < held.good_until else None

    def find_stale(self, now: datetime) -> Credential | None:
        """Return the credential of any window that is still of use, when nothing better can be had."""
        useful = now + self.rhythm.stale_least
        held = [held.credential for held in self._held.values() if held.credential.expires_at >= useful]
        return max(held, key=lambda credential: credential.expires_at, default=None)

    def hold(self, credential: Credential, turn: Turn) -> None:
        good_until = min(turn.end, credential.expires_at - self.rhythm.least)
        self._held[turn.end] = Held(credential, turn, good_until)
        while len(self._held) > _MOST_HELD:
            del self._held[min(self._held)]

    def heat(self, held: Held, chance: Chance) -> None:
        """Hand out this one until its window ends, or until the next one's should be asked for."""
        if held.credential is not self.hot or held.turn.start != self.hot_from:
            self.hot, self.hot_from = held.credential, held.turn.start
            # Only ever earlier than need be, and not everywhere at once.
            ahead = self.rhythm.ahead * (0.2 + 0.8 * chance())
            self.refresh_at = held.turn.end - ahead
        is_next_held = held.turn.end + self.rhythm.width in self._held
        self.hot_until = held.good_until if is_next_held else min(held.good_until, self.refresh_at)

    def size(self) -> int:
        secrets = sum(_HELD_BYTES + _length(held.credential) for held in self._held.values())
        return _LINE_BYTES + len(self.key) + secrets


def new_line(fingerprint: bytes, scope: Scope) -> Line:
    key = scope_key(fingerprint, scope)
    return Line(fingerprint=fingerprint, key=key, rhythm=rhythm_of(key, scope.life))


def is_short(credential: Credential, rhythm: Rhythm, now: datetime) -> bool:
    """Tell whether the provider has given less than may be handed out again."""
    return left(credential, now) < rhythm.least


def left(credential: Credential, now: datetime) -> timedelta:
    return credential.expires_at - now


def _length(credential: Credential) -> int:
    texts = (getattr(credential.secret, name.name) for name in fields(credential.secret))
    return len(credential.id) + sum(map(len, texts))
