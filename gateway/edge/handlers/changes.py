"""The change data feed of a table, between two points of its history."""

from __future__ import annotations

from aiohttp import web

from gateway.edge.asked import FilesAsked, ask_for_files
from gateway.edge.exchange import Exchange
from gateway.edge.parameters import ChangesQuery, changes_of
from gateway.edge.streaming import stream_files
from gateway.v1.snapshot_pb2 import ChangesRequest


async def changes(exchange: Exchange) -> web.StreamResponse:
    asked = await ask_for_files(exchange)
    query = changes_of(exchange.request.query)
    stream = exchange.edge.services.snapshot.Changes(
        _message(asked, query),
        timeout=exchange.edge.settings.stream_timeout.total_seconds(),
        metadata=exchange.metadata,
    )
    return await stream_files(
        exchange, asked, stream, takes_end=query.max_files is not None or bool(query.page_token)
    )


def _message(asked: FilesAsked, query: ChangesQuery) -> ChangesRequest:
    return ChangesRequest(
        grant=asked.snapshot_grant,
        capabilities=asked.client.to_proto(),
        file_id_hash=asked.file_id_hash,
        start=query.start,
        end=query.end,
        include_historical_metadata=query.include_historical_metadata,
        include_historical_protocol=query.include_historical_protocol,
        max_files=query.max_files,
        page_token=query.page_token,
    )
