"""The files of a table, or what has changed in it since a version."""

from __future__ import annotations

from aiohttp import web

from gateway.edge.asked import FilesAsked, ask_for_files
from gateway.edge.exchange import Exchange
from gateway.edge.parameters import table_at
from gateway.edge.schema import QueryBody, parse_query_body, read_body
from gateway.edge.streaming import stream_files
from gateway.v1.snapshot_pb2 import QueryRequest


async def query(exchange: Exchange) -> web.StreamResponse:
    settings = exchange.edge.settings
    body = await read_body(exchange.request, settings.body_limit, settings.body_timeout)
    asked = await ask_for_files(exchange)
    parsed = parse_query_body(exchange.request, body)
    stream = exchange.edge.services.snapshot.Query(
        _message(asked, parsed),
        timeout=settings.stream_timeout.total_seconds(),
        metadata=exchange.metadata,
    )
    return await stream_files(
        exchange,
        asked,
        stream,
        has_hints=bool(parsed.predicate_hints or parsed.json_predicate_hints),
        takes_end=bool(parsed.max_files or parsed.page_token or parsed.include_refresh_token),
    )


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
