"""A load generator for one request: keep-alive connections in a process of its own, and little else."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from time import perf_counter
from typing import cast
from urllib.parse import urlsplit

import uvloop

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    url: str
    token: str
    # Without a body: the calls that take one make do without.
    method: str = "GET"
    # What of Content-Encoding is accepted; empty: the header is left out.
    encoding: str = ""
    connections: int = 16
    seconds: float = 2.0
    warm_up: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    requests_per_second: float
    p50_ms: float
    p99_ms: float


def measure(load: Load) -> Outcome:
    """Put the load on a server from another process; every answer must be a 200."""
    return run_apart("bench.load", asdict(load))


def run_apart(module: str, load: Mapping[str, object]) -> Outcome:
    """Run a module in a process of its own, which takes a load as JSON and answers with what came of it."""
    result = subprocess.run(
        [sys.executable, "-m", module],
        input=json.dumps(load),
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise RuntimeError(result.stderr)
    return Outcome(**json.loads(result.stdout))


class _Connection(asyncio.Protocol):
    """Sends the request again as soon as its answer is whole."""

    def __init__(self, request: bytes, done: asyncio.Future[None]) -> None:
        self.latencies: list[float] = []
        self._request = request
        self._done = done
        self._buffer = b""
        self._sent_at = 0.0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport is one without saying so.
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not _is_whole(self._buffer):
            return
        if not self._buffer.startswith(b"HTTP/1.1 200 "):
            self._fail(self._buffer[:500].decode(errors="replace"))
            return
        self.latencies.append(perf_counter() - self._sent_at)
        self._buffer = b""
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail("the server closed the connection")

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _send(self) -> None:
        assert self._transport is not None
        self._sent_at = perf_counter()
        self._transport.write(self._request)

    def _fail(self, message: str) -> None:
        if not self._done.done():
            self._done.set_exception(RuntimeError(message))


def _is_whole(answer: bytes) -> bool:
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return False
    head = answer[: end + 2]
    if length := _LENGTH.search(head):
        return len(answer) >= end + 4 + int(length[1])
    assert _CHUNKED.search(head), "an answer of unknown length"
    return answer.endswith(b"\r\n0\r\n\r\n")


async def _run(load: Load) -> Outcome:
    url = urlsplit(load.url)
    accept_encoding = f"Accept-Encoding: {load.encoding}\r\n" if load.encoding else ""
    request = (
        f"{load.method} {url.path}{'?' if url.query else ''}{url.query} HTTP/1.1\r\nHost: {url.netloc}\r\n"
        f"{accept_encoding}"
        f"Authorization: Bearer {load.token}\r\nAccept: */*\r\nContent-Length: 0\r\n\r\n"
    ).encode()
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    connect = partial(loop.create_connection, partial(_Connection, request, done))
    connections = [(await connect(url.hostname, url.port))[1] for _ in range(load.connections)]
    await _elapse(load.warm_up, done)
    for connection in connections:
        connection.latencies.clear()
    began = perf_counter()
    await _elapse(load.seconds, done)
    elapsed = perf_counter() - began
    done.cancel()
    for connection in connections:
        connection.close()
    latencies = sorted(latency for connection in connections for latency in connection.latencies)
    return Outcome(
        requests_per_second=len(latencies) / elapsed,
        p50_ms=latencies[len(latencies) // 2] * 1000,
        p99_ms=latencies[len(latencies) * 99 // 100] * 1000,
    )


async def _elapse(seconds: float, failed: asyncio.Future[None]) -> None:
    await asyncio.wait([failed], timeout=seconds)
    if failed.done():
        failed.result()


if __name__ == "__main__":
    outcome = uvloop.run(_run(Load(**json.load(sys.stdin))))
    print(json.dumps(asdict(outcome)))
