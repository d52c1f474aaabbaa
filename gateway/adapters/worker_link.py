"""The line between a worker and its supervisor: reports go up it, and its end is the end of either."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from prometheus_client import CollectorRegistry

from gateway.adapters.worker_metrics import Report, to_report

# What a worker that is killed may have counted in vain.
METRICS_INTERVAL: Final = timedelta(seconds=1)
_SERVICES_INTERVAL: Final = timedelta(seconds=1)
_MAX_LINE: Final = 64 * 1024 * 1024

log = logging.getLogger(__name__)

Readiness = Callable[[], Awaitable[Mapping[str, str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One of the two things that a worker has to say."""

    metrics: Report | None = None
    # What each service that it needs answers.
    services: Mapping[str, str] | None = None


class Reporter:
    """Speaks for a worker where another process has a port for its metrics and health."""

    # It listens nowhere.
    address = ""

    def __init__(
        self, writer: asyncio.StreamWriter, registry: CollectorRegistry, readiness: Readiness
    ) -> None:
        self._writer = writer
        self._registry = registry
        self._readiness = readiness

    def drain(self) -> None:
        """Say nothing: who supervises has asked for it, or sees it end."""

    async def send_metrics(self) -> None:
        # In a thread: with many series this takes longer than requests should wait.
        await self._send(await asyncio.to_thread(self._metrics_line))

    async def send_services(self) -> None:
        await self._send(_to_line(services=dict(await self._readiness())))

    def _metrics_line(self) -> bytes:
        return _to_line(metrics=to_report(self._registry.collect()))

    async def _send(self, line: bytes) -> None:
        self._writer.write(line)
        await self._writer.drain()


@asynccontextmanager
async def reporting(
    link: socket.socket, on_lost: Callable[[], None], registry: CollectorRegistry, readiness: Readiness
) -> AsyncIterator[Reporter]:
    """Report until the block is left; tell when nobody listens any more."""
    reader, writer = await asyncio.open_unix_connection(sock=link)
    reporter = Reporter(writer, registry, readiness)
    tasks = [
        asyncio.create_task(_repeat(reporter.send_metrics, METRICS_INTERVAL)),
        asyncio.create_task(_repeat(reporter.send_services, _SERVICES_INTERVAL)),
        asyncio.create_task(_watch(reader, on_lost)),
    ]
    try:
        yield reporter
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(ConnectionError):
            await reporter.send_metrics()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


@asynccontextmanager
async def received(link: socket.socket) -> AsyncIterator[AsyncIterator[Message]]:
    """Give what comes from a worker until its end of the line is closed."""
    reader, writer = await asyncio.open_unix_connection(sock=link, limit=_MAX_LINE)
    try:
        yield _messages(reader)
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def _messages(reader: asyncio.StreamReader) -> AsyncIterator[Message]:
    with suppress(ConnectionError):
        # A worker that is killed may leave half a line.
        while (line := await reader.readline()).endswith(b"\n"):
            yield Message(**json.loads(line))


def _to_line(**content: Any) -> bytes:
    return json.dumps(content).encode() + b"\n"


async def _repeat(send: Callable[[], Awaitable[None]], interval: timedelta) -> None:
    while True:
        try:
            await send()
        except ConnectionError:
            return
        except Exception:
            log.exception("a report to the supervisor failed")
        await asyncio.sleep(interval.total_seconds())


async def _watch(reader: asyncio.StreamReader, on_lost: Callable[[], None]) -> None:
    with suppress(ConnectionError):
        await reader.read()
    on_lost()
