"""Answers that name files: an error body up to the first signed page, and from then on a stream."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from gateway.domain.audit import AuditKind
from gateway.edge.abort import abort
from gateway.edge.answer import table_headers
from gateway.edge.asked import FilesAsked
from gateway.edge.errors import StreamAborted, fault_of
from gateway.edge.exchange import OK, Exchange
from gateway.edge.ndjson import line
from gateway.edge.pages import MessageStream, PageStream, open_pages
from gateway.edge.signing import PageSigner, PresignGrant, SignedPage, moment
from gateway.errors import DeadlineExceeded
from gateway.v1.catalog_pb2 import ResolveResponse
from gateway.v1.snapshot_pb2 import TableHead

# What is handed to the connection at once: a client need not be fast, only alive.
_PIECE: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beginning:
    """Everything that must be in hand before the answer's first byte leaves."""

    head: TableHead
    first: SignedPage | None


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
        response = web.StreamResponse(headers=headers)
        await response.prepare(exchange.request)
        action = await _send(exchange, response, pages, begin, tells_errors=is_announced)
        if is_announced or takes_end:
            await response.write(line({"endStreamAction": action}))
        await response.write_eof()
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


async def _send(
    exchange: Exchange,
    response: web.StreamResponse,
    pages: PageStream,
    begin: _Beginning,
    *,
    tells_errors: bool,
) -> dict[str, Any]:
    """Send all pages, and return what is to be said at the end; whatever goes wrong never looks like it."""
    try:
        return await _send_pages(exchange, response, pages, begin)
    except (ConnectionError, asyncio.CancelledError):
        abort(exchange.request.transport)
        raise
    except Exception as exc:
        fault = exchange.late_fault = fault_of(exc)
        # Only a client that announced it looks for an error in the last line: others take it for the end.
        if not tells_errors:
            abort(exchange.request.transport)
            raise StreamAborted(fault) from exc
        return {"errorMessage": fault.message, "httpStatusErrorCode": fault.status}


async def _send_pages(
    exchange: Exchange, response: web.StreamResponse, pages: PageStream, begin: _Beginning
) -> dict[str, Any]:
    """Send the head and all pages, and return what is to be said at the end."""
    earliest: int | None = None
    await _write(response, begin.head.lines)
    page = begin.first
    while page is not None:
        exchange.files += page.files
        exchange.file_bytes += page.file_bytes
        exchange.edge.ports.metrics.count_files(page.files, page.file_bytes)
        await _write(response, page.lines)
        if page.expires_at_ms is not None:
            earliest = min(earliest or page.expires_at_ms, page.expires_at_ms)
        page = await pages.page()
    said = {
        "refreshToken": pages.end.refresh_token,
        # An empty one would make a client ask for ever.
        "nextPageToken": pages.end.next_page_token,
        "minUrlExpirationTimestamp": earliest,
    }
    return {name: value for name, value in said.items() if value}


async def _write(response: web.StreamResponse, data: bytes) -> None:
    view = memoryview(data)
    for start in range(0, len(view), _PIECE):
        await response.write(view[start : start + _PIECE])
