"""A table's version and metadata."""

from __future__ import annotations

from aiohttp import web

from gateway.edge import capabilities
from gateway.edge.access_mode import negotiate
from gateway.edge.answer import table_headers, version_answer
from gateway.edge.exchange import Exchange
from gateway.edge.parameters import starting_timestamp_of, table_at_of
from gateway.v1 import catalog_pb2, snapshot_pb2


async def get_version(exchange: Exchange) -> web.StreamResponse:
    resolved = await exchange.resolve(catalog_pb2.AUDIENCE_SNAPSHOT)
    message = snapshot_pb2.GetVersionRequest(
        grant=resolved.grants[0], starting_timestamp=starting_timestamp_of(exchange.request.query)
    )
    found = await exchange.call(exchange.edge.services.snapshot.GetVersion, message)
    exchange.version = found.version
    return version_answer(found.version)


async def get_metadata(exchange: Exchange) -> web.StreamResponse:
    """Answer with two lines exactly, whatever else the client can take: clients count them."""
    resolved = await exchange.resolve(catalog_pb2.AUDIENCE_SNAPSHOT)
    client = capabilities.parse(exchange.request.headers.getall(capabilities.HEADER, ()))
    access_modes = negotiate(client, resolved.table)
    message = snapshot_pb2.GetMetadataRequest(
        grant=resolved.grants[0], capabilities=client.to_proto(), at=table_at_of(exchange.request.query)
    )
    found = await exchange.call(exchange.edge.services.snapshot.GetMetadata, message)
    exchange.version = found.head.version
    return web.Response(body=found.head.lines, headers=table_headers(found.head, access_modes))
