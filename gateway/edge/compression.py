"""Answers are compressed where their client can read it and it pays (docs/decisions/0016-compression.md)."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final, Protocol

from aiohttp import hdrs, web
from isal import isal_zlib

from gateway.edge.accept_encoding import Coding, parse

if sys.version_info >= (3, 14):
    from compression.zstd import CompressionParameter, ZstdCompressor
else:
    from backports.zstd import CompressionParameter, ZstdCompressor

# A shorter answer saves no round trip.
MIN_SIZE: Final = 4 * 1024
# What is longer is compressed in a thread: the event loop is everybody's.
_MAX_ON_LOOP: Final = 64 * 1024
_GZIP_LEVEL: Final = 1
_GZIP_FORMAT: Final = 16 + isal_zlib.MAX_WBITS
# A window of 256 KiB: what repeats in lines repeats within it, and each stream under way has its own.
_ZSTD_OPTIONS: Final[dict[int, int]] = {
    CompressionParameter.compression_level: 1,
    CompressionParameter.window_log: 18,
}


class Encoder(Protocol):
    """A body that is being written in some coding."""

    async def encode(self, data: bytes) -> bytes:
        """Return what comes next; all data up to here can be read from it."""

    async def finish(self, data: bytes) -> bytes:
        """Return what comes last: without it, no reader takes a compressed body for whole."""


class Compression:
    """Chooses codings, and compresses in threads of its own: one for each core, so that all get a turn."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._pool = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="compression")

    def choose(self, accepted: Sequence[str], size: int) -> Coding:
        """Return the coding of an answer that is at least so long, by its request's Accept-Encoding."""
        if not self._enabled:
            return Coding.IDENTITY
        client = parse(accepted)
        return Coding.IDENTITY if size < MIN_SIZE and client.plain else client.best

    def headers(self, coding: Coding) -> dict[str, str]:
        """Return what an answer says of its coding, and of that it could have had another."""
        if not self._enabled:
            return {}
        headers: dict[str, str] = {hdrs.VARY: hdrs.ACCEPT_ENCODING}
        if coding is not Coding.IDENTITY:
            headers[hdrs.CONTENT_ENCODING] = coding.value
        return headers

    def open(self, coding: Coding) -> Encoder:
        make = _STREAMS.get(coding)
        return _Plain() if make is None else _Compressed(make(), self._pool)

    async def compress(self, response: web.Response, accepted: Sequence[str]) -> None:
        """Compress an answer that is whole already."""
        body = response.body
        if not isinstance(body, bytes):
            return
        coding = self.choose(accepted, len(body))
        response.headers.update(self.headers(coding))
        response.body = await self.open(coding).finish(body)

    async def close(self) -> None:
        """Wait for nobody: a page that is still being compressed has no reader any more."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class _Stream(Protocol):
    def encode(self, data: bytes) -> bytes: ...

    def finish(self, data: bytes) -> bytes: ...


class _Gzip:
    def __init__(self) -> None:
        self._stream = isal_zlib.compressobj(_GZIP_LEVEL, isal_zlib.DEFLATED, _GZIP_FORMAT)

    def encode(self, data: bytes) -> bytes:
        return self._stream.compress(data) + self._stream.flush(isal_zlib.Z_SYNC_FLUSH)

    def finish(self, data: bytes) -> bytes:
        return self._stream.compress(data) + self._stream.flush(isal_zlib.Z_FINISH)


class _Zstd:
    def __init__(self) -> None:
        self._stream = ZstdCompressor(options=_ZSTD_OPTIONS)

    def encode(self, data: bytes) -> bytes:
        return self._stream.compress(data, ZstdCompressor.FLUSH_BLOCK)

    def finish(self, data: bytes) -> bytes:
        return self._stream.compress(data, ZstdCompressor.FLUSH_FRAME)


_STREAMS: Final[dict[Coding, Callable[[], _Stream]]] = {Coding.GZIP: _Gzip, Coding.ZSTD: _Zstd}


class _Plain:
    async def encode(self, data: bytes) -> bytes:
        return data

    async def finish(self, data: bytes) -> bytes:
        return data


class _Compressed:
    """A compressed stream. One that was cancelled in the middle of a step is of no use any more."""

    def __init__(self, stream: _Stream, pool: Executor) -> None:
        self._stream = stream
        self._pool = pool

    async def encode(self, data: bytes) -> bytes:
        return await self._run(self._stream.encode, data)

    async def finish(self, data: bytes) -> bytes:
        return await self._run(self._stream.finish, data)

    async def _run(self, step: Callable[[bytes], bytes], data: bytes) -> bytes:
        if len(data) <= _MAX_ON_LOOP:
            return step(data)
        return await asyncio.get_running_loop().run_in_executor(self._pool, step, data)
