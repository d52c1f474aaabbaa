"""The body of an answer that is sent page by page."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from gateway.edge.compression import Encoder

# What is handed to the connection at once: a client need not be fast, only alive.
_PIECE: Final = 256 * 1024


class StreamBody:
    """Sends pages, each of which a client can read when it has arrived, whatever the coding."""

    def __init__(self, response: web.StreamResponse, encoder: Encoder) -> None:
        self._response = response
        self._encoder = encoder
        self._is_broken = False

    async def write(self, page: bytes) -> None:
        self._is_broken = True
        await self._send(await self._encoder.encode(page))
        self._is_broken = False

    async def end(self, last: bytes) -> None:
        """Send what comes last, and end the answer; one that broke within a page has no end."""
        if self._is_broken:
            raise ConnectionError("the answer broke within a page")
        await self._send(await self._encoder.finish(last))
        await self._response.write_eof()

    async def _send(self, data: bytes) -> None:
        view = memoryview(data)
        for start in range(0, len(view), _PIECE):
            await self._response.write(view[start : start + _PIECE])
