"""The pages of a query, signed and spliced, one of them ahead of the reader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from grpc.aio import AioRpcError

from gateway.edge.exchange import Exchange, grant_error
from gateway.edge.ndjson import splice
from gateway.errors import Internal, Unavailable
from gateway.v1.catalog_pb2 import AUDIENCE_PRESIGN, ResolveResponse
from gateway.v1.presign_pb2 import SignRequest, SignResponse
from gateway.v1.snapshot_pb2 import FilePage, QueryRequest, QueryResponse, TableHead

# A grant that ends sooner is renewed before it is used: the call itself takes time.
_MARGIN: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedPage:
    lines: bytes
    files: int
    file_bytes: int
    # None: nothing in the page was signed.
    expires_at_ms: int | None


class PageStream:
    """The head, then page by page. While one is being sent the next is signed; there is never a third."""

    def __init__(self, exchange: Exchange, stream: _Stream, grant: PresignGrant) -> None:
        self._exchange = exchange
        self._stream = stream
        self._messages = aiter(stream)
        self._grant = grant
        self._ahead: asyncio.Task[SignedPage | None] | None = None

    async def head(self) -> TableHead:
        message = await self._receive()
        if message is None or message.WhichOneof("part") != "head":
            raise Internal("a query did not begin with the table's head")
        self._ahead = asyncio.create_task(self._fetch())
        return message.head

    async def page(self) -> SignedPage | None:
        """Return the next page, or None after the last; the one behind it is begun."""
        if self._ahead is None:
            return None
        page = await self._ahead
        self._ahead = None if page is None else asyncio.create_task(self._fetch())
        return page

    async def close(self) -> None:
        """Stop what is under way, here and in the services."""
        self._stream.cancel()
        if self._ahead is not None:
            self._ahead.cancel()
            await asyncio.gather(self._ahead, return_exceptions=True)

    async def _fetch(self) -> SignedPage | None:
        message = await self._receive()
        if message is None:
            return None
        page = message.page
        signed = await self._sign(page) if page.paths else None
        return SignedPage(
            lines=page.lines if signed is None else splice(page, signed),
            files=page.files,
            file_bytes=page.file_bytes,
            expires_at_ms=None if signed is None else signed.expires_at_ms,
        )

    async def _receive(self) -> QueryResponse | None:
        try:
            return await anext(self._messages, None)
        except AioRpcError as exc:
            raise grant_error(exc) from exc

    async def _sign(self, page: FilePage) -> SignResponse:
        message = SignRequest(grant=await self._grant.current(), location=page.location, paths=page.paths)
        edge = self._exchange.edge
        try:
            return await edge.services.presign.Sign(
                message,
                timeout=edge.settings.request_timeout.total_seconds(),
                metadata=self._exchange.metadata,
            )
        except AioRpcError as exc:
            raise grant_error(exc) from exc


class PresignGrant:
    """A grant to sign with, renewed while a long answer outlives it."""

    def __init__(self, exchange: Exchange, resolved: ResolveResponse, grant: str) -> None:
        self._exchange = exchange
        self._table = resolved.table
        self._grant = grant
        self._expires_at_ms = resolved.expires_at_ms

    async def current(self) -> str:
        if self._exchange.edge.ports.clock() + _MARGIN >= moment(self._expires_at_ms):
            await self._renew()
        return self._grant

    async def _renew(self) -> None:
        resolved = await self._exchange.resolve_again(AUDIENCE_PRESIGN)
        # The pages name files of the table as it was: elsewhere their paths would lead to other files.
        if (resolved.table.id, resolved.table.location, tuple(resolved.table.auxiliary_locations)) != (
            self._table.id,
            self._table.location,
            tuple(self._table.auxiliary_locations),
        ):
            raise Unavailable("the table was moved while it was being read; try again")
        self._grant = resolved.grants[0]
        self._expires_at_ms = resolved.expires_at_ms


@asynccontextmanager
async def open_pages(
    exchange: Exchange, message: QueryRequest, grant: PresignGrant
) -> AsyncIterator[PageStream]:
    """Start a query; whatever happens, it is not left running."""
    edge = exchange.edge
    stream = edge.services.snapshot.Query(
        message, timeout=edge.settings.stream_timeout.total_seconds(), metadata=exchange.metadata
    )
    pages = PageStream(exchange, stream, grant)
    try:
        yield pages
    finally:
        await pages.close()


def moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC)


class _Stream(Protocol):
    def __aiter__(self) -> AsyncIterator[QueryResponse]: ...

    def cancel(self) -> bool: ...
