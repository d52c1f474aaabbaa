"""The result of a query that had to wait, once it is there."""

from __future__ import annotations

from aiohttp import web

from gateway.edge.answer import pending_answer
from gateway.edge.asked import ask_for_files
from gateway.edge.errors import FailedQuery
from gateway.edge.exchange import Exchange
from gateway.edge.handlers.query import answer_query
from gateway.edge.schema import continued_query, parse_poll_body, read_body
from gateway.errors import Unsupported
from gateway.v1.catalog_pb2 import QUERY_STATE_FAILED, QUERY_STATE_READY, AsyncQuery, QueryStatus

QUERY_FAILED = "QUERY_FAILED"


async def follow(exchange: Exchange) -> web.StreamResponse:
    """Answer as the query itself would have, or that it still waits."""
    settings = exchange.edge.settings
    body = await read_body(exchange.request, settings.body_limit, settings.body_timeout)
    query_id = exchange.name("queryId")
    asked = await ask_for_files(exchange, AsyncQuery(query_id=query_id))
    poll = parse_poll_body(exchange.request, body, query_id)
    status = asked.resolved.query
    if status.state == QUERY_STATE_FAILED:
        raise _failed(status)
    if status.state != QUERY_STATE_READY:
        return pending_answer(query_id, asked.access_modes)
    return await answer_query(exchange, asked, continued_query(status.parameters, poll))


def _failed(status: QueryStatus) -> Unsupported:
    # A 4xx: most clients take a 5xx for something that another attempt at the same may mend.
    return Unsupported(status.message, error_code=QUERY_FAILED, fault=FailedQuery(query_id=status.query_id))
