"""Names that a caller wrote, in messages and events: as they are, within limits."""

from __future__ import annotations

from typing import Final

# Room for three names in full, and little enough for the trailing metadata of a gRPC status.
_MAX_BYTES: Final = 1024


def clipped(name: str) -> str:
    """Return a name, cut where it is longer than any name is."""
    data = name.encode(errors="replace")
    return name if len(data) <= _MAX_BYTES else f"{data[:_MAX_BYTES].decode(errors='ignore')}…"


def quoted(name: str) -> str:
    """Return a name in quotes, unprintable characters escaped."""
    return repr(clipped(name))
