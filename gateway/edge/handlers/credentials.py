"""Temporary credentials for the directories of a table."""

from __future__ import annotations

import time

from aiohttp import web

from gateway.domain.audit import AuditKind
from gateway.edge import capabilities
from gateway.edge.access_mode import negotiate, require_dir
from gateway.edge.advertised import find_location, locations_of
from gateway.edge.answer import json_answer
from gateway.edge.credential import container_json, credential_json
from gateway.edge.exchange import OK, Exchange
from gateway.edge.json import encode_json
from gateway.edge.parameters import location_of
from gateway.edge.schema import parse_credentials_body, read_body
from gateway.edge.signing import moment
from gateway.errors import Internal, Unavailable
from gateway.v1.catalog_pb2 import AUDIENCE_VENDING, ResolveResponse
from gateway.v1.vending_pb2 import IssueRequest, IssueResponse


async def issue(exchange: Exchange) -> web.StreamResponse:
    """Answer with a credential in the protocol's words."""
    settings = exchange.edge.settings
    body = await read_body(exchange.request, settings.body_limit, settings.body_timeout)
    resolved = await exchange.resolve(AUDIENCE_VENDING)
    client = capabilities.parse(exchange.request.headers.getall(capabilities.HEADER, ()))
    access_modes = negotiate(client, resolved.table)
    require_dir(resolved.table)
    issued = await _issue(exchange, resolved, parse_credentials_body(exchange.request, body))
    answer = credential_json(issued, resolved.table, region_and_endpoint=settings.region_and_endpoint)
    await _audit(exchange, issued)
    return json_answer(encode_json(answer), access_modes)


async def issue_for_aws(exchange: Exchange) -> web.StreamResponse:
    """Answer as a container's credentials endpoint does, so that AWS tools refresh by themselves."""
    resolved = await exchange.resolve(AUDIENCE_VENDING)
    require_dir(resolved.table)
    issued = await _issue(exchange, resolved, location_of(exchange.request.query))
    answer = container_json(issued)
    await _audit(exchange, issued)
    return json_answer(encode_json(answer))


async def _issue(exchange: Exchange, resolved: ResolveResponse, asked: str | None) -> IssueResponse:
    edge, number = exchange.edge, find_location(resolved.table, asked)
    message = IssueRequest(grant=resolved.grants[0], location=number)
    started = time.perf_counter()
    issued = await exchange.call(edge.services.vending.Issue, message)
    if time.perf_counter() - started >= edge.settings.grant_again_after.total_seconds():
        await _require_unchanged(exchange, resolved)
    if issued.location != locations_of(resolved.table)[number] or issued.WhichOneof("credential") is None:
        # Clients replace working credentials with whatever an answer holds.
        raise Internal("internal error: vending answered something else than it was asked for")
    return issued


async def _require_unchanged(exchange: Exchange, resolved: ResolveResponse) -> None:
    """Hand out nothing that was withdrawn while it was being made."""
    again = await exchange.resolve_again(AUDIENCE_VENDING)
    if _facts(again) != _facts(resolved):
        raise Unavailable("the table was changed while its credential was being made; try again")


def _facts(resolved: ResolveResponse) -> tuple[object, ...]:
    return resolved.principal, resolved.revoked_at_ms, resolved.table


async def _audit(exchange: Exchange, issued: IssueResponse) -> None:
    """Record that a credential is handed out, before it is."""
    event = exchange.event(
        AuditKind.GRANT,
        OK,
        mode="dir",
        locations=(issued.location,),
        credential_id=issued.credential_id,
        expires_at=moment(issued.expires_at_ms),
    )
    await exchange.edge.ports.audit.append(event)
    exchange.edge.ports.metrics.count_credential(exchange.principal)
    exchange.is_recorded = True
