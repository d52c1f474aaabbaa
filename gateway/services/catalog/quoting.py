"""Names in messages: as the caller wrote them, within limits."""

from __future__ import annotations

from typing import Final

# Room for three names in full, and little enough for the trailing metadata of a gRPC status.
_MAX_BYTES: Final = 1024


def quoted(name: str) -> str:
    """Return a name in quotes, unprintable characters escaped, cut where it is longer than names are."""
    data = name.encode(errors="replace")
    if len(data) <= _MAX_BYTES:
        return repr(name)
    return repr(f"{data[:_MAX_BYTES].decode(errors='ignore')}…")
