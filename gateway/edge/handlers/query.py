"""The files of a table, or what has changed in it since a version."""

from __future__ import annotations

from aiohttp import web

from gateway.edge import capabilities
from gateway.edge.answer import pending_answer
from gateway.edge.asked import FilesAsked, ask_for_files
from gateway.edge.exchange import Exchange
from gateway.edge.parameters import table_at
from gateway.edge.schema import QueryBody, parse_query_body, read_body
from gateway.edge.streaming import stream_files
from gateway.errors import InvalidArgument
from gateway.v1.catalog_pb2 import AsyncQuery
from gateway.v1.snapshot_pb2 import QueryRequest


async def query(exchange: Exchange) -> web.StreamResponse:
    """Answer with the files; with the name of a query to ask for them by, where they must be made first."""
    settings = exchange.edge.settings
    body = await read_body(exchange.request, settings.body_limit, settings.body_timeout)
    asked = await ask_for_files(exchange, _wish(exchange, body))
    if asked.resolved.HasField("query"):
        return pending_answer(asked.resolved.query.query_id, asked.access_modes)
    return await answer_query(exchange, asked, parse_query_body(exchange.request, body))


async def answer_query(exchange: Exchange, asked: FilesAsked, parsed: QueryBody) -> web.StreamResponse:
    """Answer with the files of a table that is there."""
    stream = exchange.edge.services.snapshot.Query(
        _message(asked, parsed),
        timeout=exchange.edge.settings.stream_timeout.total_seconds(),
        metadata=exchange.metadata,
    )
    return await stream_files(
        exchange,
        asked,
        stream,
        has_hints=bool(parsed.predicate_hints or parsed.json_predicate_hints),
        takes_end=bool(parsed.max_files or parsed.page_token or parsed.include_refresh_token),
    )


def _wish(exchange: Exchange, body: bytes) -> AsyncQuery | None:
    """Return what is kept of a query whose client can wait; what is wrong with it is told to those known."""
    client = capabilities.parse(exchange.request.headers.getall(capabilities.HEADER, ()))
    if not client.async_query:
        return None
    try:
        parsed = parse_query_body(exchange.request, body)
    except (InvalidArgument, web.HTTPUnsupportedMediaType):
        return None
    if not parsed.may_wait:
        return None
    return AsyncQuery(parameters=parsed.parameters(), idempotency_key=parsed.any_idempotency_key)


def _message(asked: FilesAsked, body: QueryBody) -> QueryRequest:
    return QueryRequest(
        grant=asked.snapshot_grant,
        capabilities=asked.client.to_proto(),
        at=table_at(body.version, body.timestamp),
        file_id_hash=asked.file_id_hash,
        predicate_hints=body.predicate_hints or (),
        json_predicate_hints=body.json_predicate_hints or "",
        limit_hint=body.limit_hint,
        starting_version=body.starting_version,
        ending_version=None if body.starting_version is None else body.ending_version,
        include_historical_protocol=body.include_historical_protocol or False,
        max_files=body.max_files,
        page_token=body.page_token or "",
        refresh_token=body.refresh_token or "",
        include_refresh_token=body.include_refresh_token or False,
    )
