"""Answers that name files: an error body up to the first signed page, and from then on a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import hdrs, web

from gateway.domain.audit import AuditKind
from gateway.edge.abort import abort
from gateway.edge.answer import table_headers
from gateway.edge.asked import FilesAsked
from gateway.edge.body import StreamBody
from gateway.edge.errors import StreamAborted, fault_of
from gateway.edge.exchange import OK, Exchange
from gateway.edge.ndjson import line
from gateway.edge.pages import MessageStream, PageStream, open_pages
from gateway.edge.signing import PageSigner, PresignGrant, SignedPage, moment
from gateway.errors import DeadlineExceeded
from gateway.v1.catalog_pb2 import ResolveResponse
from gateway.v1.snapshot_pb2 import TableHead

# Has nginx pass on what it gets as it gets it, even where its configuration says nothing of that.
_UNBUFFERED: Final = {"X-Accel-Buffering": "no"}


@dataclass(slots=True, kw_only=True)
class _Beginning:
    """Everything that must be in hand before the answer's first byte leaves."""

    head: TableHead
    first: SignedPage | None

    @property
    def size(self) -> int:
        return len(self.head.lines) + (0 if self.first is None else len(self.first.lines))

    def take_first(self) -> SignedPage | None:
        """Return the first page once: who sends an answer for an hour need not hold it for as long."""
        page, self.first = self.first, None
        return page


async def stream_files(
    exchange: Exchange,
    asked: FilesAsked,
    stream: MessageStream,
    *,
    has_hints: bool = False,
    takes_end: bool = False,
) -> web.StreamResponse:
    """Answer with what a call of the snapshot service gives.

    An end of stream is a line that many clients do not know: it is sent to those that asked for one, and to
    those whose request takes one along.
    """
    signer = PageSigner(exchange, PresignGrant(exchange, asked.resolved, asked.presign_grant))
    is_announced = asked.client.include_end_stream_action
    async with open_pages(stream, signer) as pages:
        begin = await _begin(exchange, pages)
        await _audit(exchange, asked.resolved, begin)
        headers = table_headers(
            begin.head,
            asked.access_modes,
            end_stream_action=is_announced,
            file_id_hash=asked.file_id_word,
            has_hints=has_hints,
        )
        response, body = await _open(exchange, headers, begin.size)
        try:
            action = await _send(exchange, body, pages, begin, tells_errors=is_announced)
            await body.end(line({"endStreamAction": action}) if is_announced or takes_end else b"")
        except (ConnectionError, asyncio.CancelledError):
            # Whatever went wrong must not look like the end.
            abort(exchange.request.transport)
            raise
    return response


async def _begin(exchange: Exchange, pages: PageStream) -> _Beginning:
    try:
        async with asyncio.timeout(exchange.remaining):
            begin = _Beginning(head=await pages.head(), first=await pages.page())
    except TimeoutError as exc:
        raise DeadlineExceeded("the table took too long to read; try again later") from exc
    exchange.version = begin.head.version
    return begin


async def _audit(exchange: Exchange, resolved: ResolveResponse, begin: _Beginning) -> None:
    """Record that URLs are handed out, before the first of them is."""
    first = begin.first
    event = exchange.event(
        AuditKind.GRANT,
        OK,
        mode="url",
        locations=(resolved.table.location, *resolved.table.auxiliary_locations),
        expires_at=None if first is None or first.expires_at_ms is None else moment(first.expires_at_ms),
        files=0 if first is None else first.files,
        file_bytes=0 if first is None else first.file_bytes,
    )
    await exchange.edge.ports.audit.append(event)


async def _open(
    exchange: Exchange, headers: Mapping[str, str], size: int
) -> tuple[web.StreamResponse, StreamBody]:
    """Begin an answer that will be at least so long."""
    request, compression = exchange.request, exchange.edge.compression
    coding = compression.choose(request.headers.getall(hdrs.ACCEPT_ENCODING, ()), size)
    response = web.StreamResponse(headers={**headers, **_UNBUFFERED, **compression.headers(coding)})
    await response.prepare(request)
    return response, StreamBody(response, compression.open(coding))


async def _send(
    exchange: Exchange, body: StreamBody, pages: PageStream, begin: _Beginning, *, tells_errors: bool
) -> dict[str, Any]:
    """Send all pages, and return what is to be said at the end, or why it came early."""
    try:
        return await _send_pages(exchange, body, pages, begin)
    except ConnectionError:
        raise
    except Exception as exc:
        fault = exchange.late_fault = fault_of(exc)
        # Only a client that announced it looks for an error in the last line: others take it for the end.
        if not tells_errors:
            raise StreamAborted(fault) from exc
        return {"errorMessage": fault.message, "httpStatusErrorCode": fault.status}


async def _send_pages(
    exchange: Exchange, body: StreamBody, pages: PageStream, begin: _Beginning
) -> dict[str, Any]:
    """Send the head and all pages, and return what is to be said at the end."""
    delivery = _Delivery(exchange, body)
    await body.write(begin.head.lines)
    await delivery.send(begin.take_first())
    # A page has no name here, so that it is let go when it is sent and not when the next one comes.
    while await delivery.send(await pages.page()):
        pass
    said = {
        "refreshToken": pages.end.refresh_token,
        # An empty one would make a client ask for ever.
        "nextPageToken": pages.end.next_page_token,
        "minUrlExpirationTimestamp": delivery.earliest,
    }
    return {name: value for name, value in said.items() if value}


class _Delivery:
    """Sends pages, and adds up what they hold."""

    def __init__(self, exchange: Exchange, body: StreamBody) -> None:
        self._exchange = exchange
        self._body = body
        # When the first of all URLs expires.
        self.earliest: int | None = None

    async def send(self, page: SignedPage | None) -> bool:
        """Send a page, and tell whether there was one."""
        if page is None:
            return False
        self._exchange.files += page.files
        self._exchange.file_bytes += page.file_bytes
        metrics = self._exchange.edge.ports.metrics
        metrics.count_files(self._exchange.principal, page.files, page.file_bytes)
        # Before the write: a client that leaves during it may have all of the page.
        if page.expires_at_ms is not None:
            self.earliest = min(self.earliest or page.expires_at_ms, page.expires_at_ms)
            end = moment(page.expires_at_ms)
            self._exchange.urls_end_at = max(self._exchange.urls_end_at or end, end)
        await self._body.write(page.lines)
        return True
