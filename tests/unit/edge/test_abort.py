from __future__ import annotations

import errno
import socket
import struct
from typing import Any

from gateway.edge.abort import abort
from tests.fakes.http_connection import MemoryTransport


class Socket:
    def __init__(self) -> None:
        self.options: list[tuple[int, int, bytes]] = []
        self.closed = False

    def setsockopt(self, level: int, option: int, value: bytes) -> None:
        if self.closed:
            raise OSError(errno.EBADF, "bad file descriptor")
        self.options.append((level, option, value))


class SocketTransport(MemoryTransport):
    def __init__(self) -> None:
        super().__init__()
        self.socket = Socket()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.socket if name == "socket" else super().get_extra_info(name, default)


async def test_the_connection_is_reset_not_closed() -> None:
    transport = SocketTransport()
    abort(transport)
    assert transport.aborted
    assert transport.socket.options == [(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))]


async def test_a_transport_without_a_socket_is_aborted() -> None:
    transport = MemoryTransport()
    abort(transport)
    assert transport.aborted


async def test_what_is_closing_is_aborted_too_and_what_is_closed_does_no_harm() -> None:
    transport = SocketTransport()
    transport.close()
    transport.socket.closed = True
    abort(transport)
    assert transport.aborted
    abort(None)
