"""The files of a table: signed URLs, streamed as lines of JSON."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from gateway.domain.audit import AuditKind
from gateway.edge import capabilities
from gateway.edge.abort import abort
from gateway.edge.access_mode import negotiate, require_url
from gateway.edge.answer import table_headers
from gateway.edge.capabilities import Capabilities
from gateway.edge.errors import StreamAborted, fault_of
from gateway.edge.exchange import OK, Exchange
from gateway.edge.ndjson import line
from gateway.edge.pages import PageStream, PresignGrant, SignedPage, moment, open_pages
from gateway.edge.parameters import FILE_ID_HASH, file_id_hash_of, table_at
from gateway.edge.schema import parse_query_body, read_body
from gateway.errors import DeadlineExceeded
from gateway.v1 import catalog_pb2
from gateway.v1.catalog_pb2 import ResolveResponse, Table
from gateway.v1.snapshot_pb2 import QueryRequest, TableHead

# What is handed to the connection at once: a client need not be fast, only alive.
_PIECE: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beginning:
    """Everything that must be in hand before the answer's first byte leaves."""

    head: TableHead
    first: SignedPage | None


async def query(exchange: Exchange) -> web.StreamResponse:
    """Answer with an error body up to the first signed page, and from then on with a stream."""
    settings = exchange.edge.settings
    body = await read_body(exchange.request, settings.body_limit, settings.body_timeout)
    resolved = await exchange.resolve(catalog_pb2.AUDIENCE_SNAPSHOT, catalog_pb2.AUDIENCE_PRESIGN)
    snapshot_grant, presign_grant = resolved.grants
    client = capabilities.parse(exchange.request.headers.getall(capabilities.HEADER, ()))
    access_modes = _access_modes(client, resolved.table)
    message = _message(exchange, snapshot_grant, client, body)
    grant = PresignGrant(exchange, resolved, presign_grant)
    async with open_pages(exchange, message, grant) as pages:
        begin = await _begin(exchange, pages)
        await _audit(exchange, resolved, begin)
        headers = table_headers(begin.head, access_modes, end_stream_action=client.include_end_stream_action)
        response = web.StreamResponse(headers=headers | _file_id_hash_echo(exchange))
        await response.prepare(exchange.request)
        await _send(exchange, response, pages, begin, client)
    return response


def _access_modes(client: Capabilities, table: Table) -> str:
    answered = negotiate(client, table)
    require_url(table)
    return answered


def _message(exchange: Exchange, grant: str, client: Capabilities, body: bytes) -> QueryRequest:
    asked = parse_query_body(exchange.request, body)
    file_id_hash, _ = file_id_hash_of(exchange.request.headers)
    return QueryRequest(
        grant=grant,
        capabilities=client.to_proto(),
        at=table_at(asked.version, asked.timestamp),
        file_id_hash=file_id_hash,
        predicate_hints=asked.predicate_hints or (),
        json_predicate_hints=asked.json_predicate_hints or "",
        limit_hint=asked.limit_hint,
    )


def _file_id_hash_echo(exchange: Exchange) -> dict[str, str]:
    _, word = file_id_hash_of(exchange.request.headers)
    return {FILE_ID_HASH: word} if word else {}


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
    client: Capabilities,
) -> None:
    """Send all pages; whatever goes wrong on the way, it never looks like the end."""
    try:
        action = await _send_pages(exchange, response, pages, begin)
    except (ConnectionError, asyncio.CancelledError):
        abort(exchange.request.transport)
        raise
    except Exception as exc:
        fault = exchange.late_fault = fault_of(exc)
        if not client.include_end_stream_action:
            abort(exchange.request.transport)
            raise StreamAborted(fault) from exc
        action = {"errorMessage": fault.message, "httpStatusErrorCode": fault.status}
    if client.include_end_stream_action:
        await response.write(line({"endStreamAction": action}))
    await response.write_eof()


async def _send_pages(
    exchange: Exchange, response: web.StreamResponse, pages: PageStream, begin: _Beginning
) -> dict[str, str | int]:
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
    return {} if earliest is None else {"minUrlExpirationTimestamp": earliest}


async def _write(response: web.StreamResponse, data: bytes) -> None:
    view = memoryview(data)
    for start in range(0, len(view), _PIECE):
        await response.write(view[start : start + _PIECE])
