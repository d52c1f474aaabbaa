"""Serves an application from a thread of the test's own process."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from aiohttp import web

from gateway.config.schema import TlsConfig
from tests.ports import free_ports

_TRIES = 5


@dataclass
class Clock:
    """The time at a cloud, which a test can move away from ours."""

    offset: timedelta = field(default_factory=timedelta)
    # It stands still at this moment until ours has reached it.
    least: datetime | None = None

    def __call__(self) -> datetime:
        now = datetime.now(UTC) + self.offset
        return now if self.least is None else max(now, self.least)


@dataclass
class Faults:
    """Answers to give instead of the true ones, once each: statuses, with the seconds of a Retry-After."""

    pending: list[tuple[int, str | None]] = field(default_factory=list)

    def add(self, status: int, retry_after: str | None = None, *, times: int = 1) -> None:
        self.pending.extend([(status, retry_after)] * times)

    def take(self) -> web.Response | None:
        if not self.pending:
            return None
        status, retry_after = self.pending.pop(0)
        return web.Response(
            status=status, headers={} if retry_after is None else {"Retry-After": retry_after}
        )


def check_backend(status: int, body: bytes) -> None:
    """Never let the store behind refuse: its word would be taken for the double's own."""
    if status in (401, 403):
        raise web.HTTPBadGateway(text=f"the store behind the double answered {status}: {body[:500]!r}")


@contextmanager
def serving(app: web.Application, tls: TlsConfig | None = None) -> Iterator[str]:
    """Serve until the block is left; give the origin, as in ``https://127.0.0.1:12345``."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=_run, args=(loop,), daemon=True)
    thread.start()
    # Nobody waits for keep-alive connections that a client has not closed.
    runner = web.AppRunner(app, shutdown_timeout=0.1, auto_decompress=False)
    try:
        port = asyncio.run_coroutine_threadsafe(_listen(runner, _context(tls)), loop).result(60)
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(_stop(runner), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _listen(runner: web.AppRunner, context: ssl.SSLContext | None) -> int:
    await runner.setup()
    for attempt in range(_TRIES):
        (port,) = free_ports(1)
        try:
            await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
        except OSError:
            if attempt == _TRIES - 1:
                raise
        else:
            return port
    raise AssertionError("the loop returns or raises")


async def _stop(runner: web.AppRunner) -> None:
    connections = runner.server.connections if runner.server else []
    transports = [connection.transport for connection in connections if connection.transport]
    await runner.cleanup()
    # A closed TLS connection otherwise waits for a farewell from a client that may be gone.
    for transport in transports:
        transport.abort()
    for _ in range(5):
        await asyncio.sleep(0)


def _context(tls: TlsConfig | None) -> ssl.SSLContext | None:
    if tls is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tls.certificate, tls.key)
    return context
