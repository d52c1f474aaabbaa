"""The pages of an answer, signed and spliced, one of them ahead of the reader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from grpc.aio import AioRpcError

from gateway.edge.exchange import grant_error
from gateway.edge.signing import PageSigner, SignedPage
from gateway.errors import Internal
from gateway.v1.snapshot_pb2 import AnswerEnd, ChangesResponse, QueryResponse, TableHead

Message = QueryResponse | ChangesResponse


class MessageStream(Protocol):
    """A call of the snapshot service under way."""

    def __aiter__(self) -> AsyncIterator[Message]: ...

    def cancel(self) -> bool: ...


class PageStream:
    """The head, then page by page. While one is being sent the next is signed; there is never a third."""

    def __init__(self, stream: MessageStream, signer: PageSigner) -> None:
        self._stream = stream
        self._messages = aiter(stream)
        self._signer = signer
        self._ahead: asyncio.Task[SignedPage | AnswerEnd] | None = None
        # What the service says behind the last page.
        self.end = AnswerEnd()

    async def head(self) -> TableHead:
        message = await self._receive()
        if message is None or message.WhichOneof("part") != "head":
            raise Internal("an answer did not begin with the table's head")
        self._ahead = asyncio.create_task(self._fetch())
        return message.head

    async def page(self) -> SignedPage | None:
        """Return the next page, or None after the last; the one behind it is begun."""
        if self._ahead is None:
            return None
        found = await self._ahead
        if isinstance(found, AnswerEnd):
            self._ahead, self.end = None, found
            return None
        self._ahead = asyncio.create_task(self._fetch())
        return found

    async def close(self) -> None:
        """Stop what is under way, here and in the services."""
        self._stream.cancel()
        if self._ahead is not None:
            self._ahead.cancel()
            await asyncio.gather(self._ahead, return_exceptions=True)

    async def _fetch(self) -> SignedPage | AnswerEnd:
        message = await self._receive()
        part = None if message is None else message.WhichOneof("part")
        if message is None or part not in {"page", "end"}:
            # Without its last message an answer may be a part of one, however well it seems to have ended.
            raise Internal("an answer stopped before its end")
        return await self._signer.sign(message.page) if part == "page" else message.end

    async def _receive(self) -> Message | None:
        try:
            return await anext(self._messages, None)
        except AioRpcError as exc:
            raise grant_error(exc) from exc


@asynccontextmanager
async def open_pages(stream: MessageStream, signer: PageSigner) -> AsyncIterator[PageStream]:
    """Read a call that was begun; whatever happens, it is not left running."""
    pages = PageStream(stream, signer)
    try:
        yield pages
    finally:
        await pages.close()
