"""What a cached value is found by: everything that its bytes depend on, and nothing else."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from gateway.domain.location import Location
from gateway.domain.scope import Scope
from gateway.domain.window import EPOCH, Window

# Of keys and of what is stored under them: values of another format are never found.
FORMAT: Final = 1

_MICROSECOND: Final = 1_000_000


def encode(*fields: bytes | str | int) -> bytes:
    """Return the fields as bytes that no other fields give."""
    return b"".join(_with_length(field) for field in fields)


def scope_key(fingerprint: bytes, scope: Scope) -> bytes:
    """Return the key of what a storage issues for a scope, but for the window."""
    revoked = "" if scope.revoked_at is None else str(_microseconds(scope.revoked_at))
    life = round(scope.life.total_seconds() * _MICROSECOND)
    # The identity and not the text: two spellings of a location open the same directory.
    return encode("credential", FORMAT, fingerprint, *scope.location.identity, scope.recipient, life, revoked)


def window_key(key: bytes, end: datetime) -> bytes:
    """Return the key of what is issued in the window that ends then."""
    return encode(key, _microseconds(end))


def session_key(fingerprint: bytes, window: Window) -> bytes:
    """Return the key of what a storage signs with in a window."""
    return encode("session", FORMAT, fingerprint, *_moments(window))


def place_key(fingerprint: bytes, base: bytes, location: Location, window: Window) -> bytes:
    """Return the key of what is signed below a location in a window, but for the paths.

    The base is what URLs that lead back to the gateway depend on besides.
    """
    return encode("urls", FORMAT, fingerprint, base, *location.identity, *_moments(window))


def paths_key(place: bytes, paths_sha256: bytes) -> bytes:
    """Return the key of what is signed for these paths."""
    return encode(place, paths_sha256)


def marks_of(storage: str, recipient: str = "") -> tuple[bytes, ...]:
    """Return what a value can be dropped by, besides its own key."""
    mark = encode("storage", storage)
    return (mark, encode("recipient", recipient)) if recipient else (mark,)


def epoch_key(mark: bytes) -> bytes:
    """Return the key of what changes with every drop of a mark."""
    return encode("epoch", mark)


def index_key(mark: bytes) -> bytes:
    """Return the key of the list of what a mark is on."""
    return encode("index", mark)


def _moments(window: Window) -> tuple[int, ...]:
    return tuple(map(_microseconds, (window.start, window.end, window.expires_at)))


def _microseconds(moment: datetime) -> int:
    elapsed = moment - EPOCH
    return (elapsed.days * 86_400 + elapsed.seconds) * _MICROSECOND + elapsed.microseconds


def _with_length(field: bytes | str | int) -> bytes:
    data = field if isinstance(field, bytes) else str(field).encode()
    return len(data).to_bytes(4) + data
