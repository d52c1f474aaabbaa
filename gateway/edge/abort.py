"""Cuts a connection off in a way that no client can take for the end of an answer."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import Final

_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)


def abort(transport: asyncio.WriteTransport | None) -> None:
    """Reset the connection: to an HTTP/1.0 client one that is merely closed is a complete answer."""
    if transport is None:
        return
    # A transport that is closing may still wait for its client, so it is aborted too.
    if connection := transport.get_extra_info("socket"):
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    transport.abort()
