"""HTTP without a socket: bytes go straight into the server's protocol, and its bytes come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from aiohttp import web
from multidict import CIMultiDict

from gateway.edge.server import Connection, Limits

_PATIENCE = 60


class MemoryTransport(asyncio.Transport):
    """Keeps what was written, as a client would that takes everything at once."""

    def __init__(self, peer: str = "192.0.2.1") -> None:
        super().__init__(extra={"peername": (peer, 4711)})
        self.output = bytearray()
        self.closed = False
        self.aborted = False
        self.protocol: asyncio.Protocol | None = None
        self.changed = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.output += data
        self.changed.set()

    def close(self) -> None:
        self._lose(None)

    def abort(self) -> None:
        self.aborted = True
        self._lose(ConnectionAbortedError())

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def _lose(self, exc: Exception | None) -> None:
        if not self.closed and self.protocol is not None:
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, exc)
        self.closed = True
        self.changed.set()


@dataclass(frozen=True, kw_only=True)
class Reply:
    status: int
    headers: CIMultiDict[str]
    body: bytes
    # Whether the answer was ended as HTTP demands.
    complete: bool

    @property
    def lines(self) -> list[str]:
        return self.body.decode().splitlines()


@dataclass
class MemoryConnection:
    """One connection to a server, as a client sees it."""

    transport: MemoryTransport
    protocol: Connection
    _taken: int = field(default=0)

    def send(self, data: bytes) -> None:
        self.protocol.data_received(data)

    def disconnect(self) -> None:
        self.transport.close()

    async def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Reply:
        fields = {"Host": "sluice.test", **(headers or {})}
        if body or method == "POST":
            fields.setdefault("Content-Length", str(len(body)))
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.send(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode(errors="surrogateescape") + body)
        return await self.reply(method)

    async def reply(self, method: str = "GET") -> Reply:
        """Return the next answer, complete or cut off."""
        async with asyncio.timeout(_PATIENCE):
            while True:
                self.transport.changed.clear()
                parsed = _parse(bytes(self.transport.output[self._taken :]), method)
                if parsed is not None and (parsed[0].complete or self.transport.closed):
                    self._taken += parsed[1]
                    return parsed[0]
                if self.transport.closed:
                    raise ConnectionError("the server closed the connection without an answer")
                await self.transport.changed.wait()

    def body_so_far(self) -> bytes:
        """Return what has come by now of the body of the answer under way."""
        parsed = _parse(bytes(self.transport.output[self._taken :]), "GET")
        return b"" if parsed is None else parsed[0].body

    async def wait_for_output(self, text: bytes) -> None:
        async with asyncio.timeout(_PATIENCE):
            while text not in self.transport.output:
                self.transport.changed.clear()
                await self.transport.changed.wait()


class MemoryServer:
    def __init__(self, manager: web.Server, limits: Limits) -> None:
        self._manager = manager
        self._limits = limits
        self._open: set[Connection] = set()

    def connect(self, peer: str = "192.0.2.1") -> MemoryConnection:
        transport = MemoryTransport(peer)
        connection = Connection(self._manager, asyncio.get_running_loop(), self._limits, self._open)
        transport.protocol = connection
        connection.connection_made(transport)
        return MemoryConnection(transport, connection)

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> Reply:
        return await self.connect().request("GET", path, headers)

    async def post(self, path: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Reply:
        return await self.connect().request("POST", path, headers, body)


@asynccontextmanager
async def memory_server(app: web.Application, limits: Limits | None = None) -> AsyncIterator[MemoryServer]:
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        yield MemoryServer(cast("web.Server", runner.server), limits or Limits())
    finally:
        await runner.cleanup()


def _parse(data: bytes, method: str) -> tuple[Reply, int] | None:
    head, found, rest = data.partition(b"\r\n\r\n")
    if not found:
        return None
    status_line, *fields = head.decode().split("\r\n")
    headers = CIMultiDict[str]()
    for text in fields:
        name, _, value = text.partition(":")
        headers.add(name, value.strip())
    if method == "HEAD":
        body, used, complete = b"", 0, True
    elif headers.get("Transfer-Encoding") == "chunked":
        body, used, complete = _dechunk(rest)
    else:
        used = int(headers.get("Content-Length", 0))
        body, complete = rest[:used], len(rest) >= used
    reply = Reply(status=int(status_line.split()[1]), headers=headers, body=body, complete=complete)
    return reply, len(head) + 4 + used


def _dechunk(data: bytes) -> tuple[bytes, int, bool]:
    body, position = b"", 0
    while (end := data.find(b"\r\n", position)) >= 0:
        size = int(data[position:end], 16)
        start = end + 2
        if len(data) < start + size + 2:
            break
        body += data[start : start + size]
        position = start + size + 2
        if size == 0:
            return body, position, True
    return body, position, False
