"""One request on its way through the edge: whom it asks, how long it may take, what became of it."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar

from aiohttp import hdrs, web
from grpc.aio import AioRpcError

from gateway.domain.audit import AuditEvent, AuditKind
from gateway.edge.auth import ANONYMOUS, token_sha256
from gateway.edge.compression import Compression
from gateway.edge.errors import Fault
from gateway.edge.lists import ListRenderer
from gateway.edge.parameters import name_of
from gateway.edge.rate import RateLimiter
from gateway.edge.remote import client_address
from gateway.edge.request_id import traceparent_from
from gateway.edge.settings import EdgePorts, EdgeSettings, Services
from gateway.errors import SERVICE_REFUSED, GatewayError, Throttled, Unauthenticated, Unavailable
from gateway.rpc.metadata import TRACEPARENT, call_metadata
from gateway.rpc.status import to_error
from gateway.v1.catalog_pb2 import AsyncQuery, Audience, Caller, ResolveRequest, ResolveResponse

OK: Final = "OK"

_DENIED: Final = frozenset({401, 403, 404, 429})
_MAX_NAME: Final = 255
_MAX_USER_AGENT: Final = 512
_FORWARDED_FOR: Final = "X-Forwarded-For"

log = logging.getLogger(__name__)


class _Answer(Protocol):
    @property
    def principal(self) -> str: ...


Answer = TypeVar("Answer")
CatalogAnswer = TypeVar("CatalogAnswer", bound=_Answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """What all requests share."""

    settings: EdgeSettings
    services: Services
    ports: EdgePorts
    limiter: RateLimiter
    lists: ListRenderer
    compression: Compression


class Exchange:
    """A request, the calls made for it, and the facts that its audit event will hold."""

    def __init__(self, edge: Edge, request: web.Request, operation: str, request_id: str) -> None:
        self.edge = edge
        self.request = request
        self.operation = operation
        self.request_id = request_id
        self.metadata = call_metadata(request_id, traceparent_from(request.headers.get(TRACEPARENT)))
        self._started = time.perf_counter()
        self._deadline = self._started + edge.settings.request_timeout.total_seconds()
        self._presented = ANONYMOUS
        self.principal = ""
        self.table_id = ""
        self.version: int | None = None
        self.files = 0
        self.file_bytes = 0
        # When the last of the URLs that were handed out expires.
        self.urls_end_at: datetime | None = None
        # Whether the audit log already says all there is to say of a request that succeeds.
        self.is_recorded = False
        # What went wrong after the status was sent.
        self.late_fault: Fault | None = None

    def authenticate(self) -> None:
        """Read what the caller presents; whether it is worth anything is the catalog's to say."""
        if not self.edge.settings.anonymous:
            self._presented = token_sha256(self.request.headers)

    @property
    def caller(self) -> Caller:
        return Caller(token_sha256=self._presented)

    def name(self, kind: str) -> str:
        return name_of(self.request.match_info, kind)

    @property
    def remaining(self) -> float:
        """The seconds that are left until an answer must have begun."""
        return max(self._deadline - time.perf_counter(), 0.001)

    async def ask_catalog(
        self, method: Callable[..., Awaitable[CatalogAnswer]], message: Any
    ) -> CatalogAnswer:
        """Ask as the caller, at the caller's expense."""
        limiter = self.edge.limiter
        charged = limiter.find(self._presented)
        if charged is not None:
            self.principal = charged
            limiter.take(charged)
        try:
            answer = await method(message, timeout=self.remaining, metadata=self.metadata)
        except AioRpcError as exc:
            raise self._refused(_error_of(exc)) from exc
        self.principal = answer.principal
        limiter.learn(self._presented, answer.principal, charged=charged)
        return answer

    def _refused(self, error: GatewayError) -> GatewayError:
        if isinstance(error, Unauthenticated):
            # Not theirs any more: who holds a revoked token must not use up its former owner's rate.
            self.edge.limiter.forget(self._presented)
            self.principal = ""
        return error

    async def resolve(
        self, *audiences: Audience.ValueType, query: AsyncQuery | None = None
    ) -> ResolveResponse:
        """Return the table of the path with a grant for each audience, unless a query has to wait for it."""
        resolved = await self.ask_catalog(
            self.edge.services.catalog.Resolve, self._resolve_request(audiences, query)
        )
        self.table_id = resolved.table.id
        return resolved

    async def resolve_again(self, *audiences: Audience.ValueType) -> ResolveResponse:
        """Renew the grants of an answer under way: not a request of its own, and without its deadline."""
        timeout = self.edge.settings.request_timeout.total_seconds()
        try:
            return await self.edge.services.catalog.Resolve(
                self._resolve_request(audiences), timeout=timeout, metadata=self.metadata
            )
        except AioRpcError as exc:
            raise _error_of(exc) from exc

    async def call(self, method: Callable[..., Awaitable[Answer]], message: Any) -> Answer:
        """Call a service that takes a grant."""
        try:
            return await method(message, timeout=self.remaining, metadata=self.metadata)
        except AioRpcError as exc:
            raise grant_error(exc) from exc

    def event(self, kind: AuditKind, outcome: str, **facts: Any) -> AuditEvent:
        """Return an audit event with what is known of this request by now."""
        headers, match = self.request.headers, self.request.match_info
        return AuditEvent(
            id=secrets.token_hex(16),
            at=self._now(),
            kind=kind,
            operation=self.operation,
            outcome=outcome,
            principal=self.principal,
            share=_clean(match.get("share", ""), _MAX_NAME),
            schema=_clean(match.get("schema", ""), _MAX_NAME),
            table=_clean(match.get("table", ""), _MAX_NAME),
            table_id=self.table_id,
            version=self.version,
            request_id=self.request_id,
            remote=client_address(
                self.request.remote, headers.getall(_FORWARDED_FOR, ()), self.edge.settings.trusted_proxies
            ),
            user_agent=_clean(headers.get(hdrs.USER_AGENT, ""), _MAX_USER_AGENT),
            duration_ms=int((time.perf_counter() - self._started) * 1000),
            **facts,
        )

    def note(self, status: int, outcome: str) -> None:
        """Keep what became of the request in the audit log."""
        if self.is_recorded and outcome == OK:
            return
        kind = AuditKind.DENIAL if status in _DENIED else AuditKind.REQUEST
        facts = {"files": self.files, "file_bytes": self.file_bytes, "expires_at": self.urls_end_at}
        event = self.event(kind, outcome, **facts)
        self.edge.ports.audit.note(event)

    def _resolve_request(
        self, audiences: tuple[Audience.ValueType, ...], query: AsyncQuery | None = None
    ) -> ResolveRequest:
        return ResolveRequest(
            caller=self.caller,
            share=self.name("share"),
            schema=self.name("schema"),
            table=self.name("table"),
            audiences=audiences,
            query=query,
        )

    def _now(self) -> datetime:
        return self.edge.ports.clock()


def grant_error(exc: AioRpcError) -> GatewayError:
    """Return the error of a service that takes a grant: a refused grant is our trouble, not the caller's."""
    error = _error_of(exc)
    if isinstance(error, Unauthenticated):
        return Unavailable("the gateway's services do not agree about a grant; try again later")
    return error


def _error_of(exc: AioRpcError) -> GatewayError:
    """Return a service's error: an edge that it refuses or throttles is our trouble, not the caller's."""
    error = to_error(exc)
    if error.error_code == SERVICE_REFUSED:
        log.error("a service refuses this edge, see principals: %s", error.message)
        return Unavailable("the gateway's services do not trust each other; try again later")
    if isinstance(error, Throttled):
        log.warning("a service throttles this edge, see principals: %s", error.message)
        return Unavailable("the gateway has too much to do; try again later", retry_after=error.retry_after)
    return error


def _clean(text: str, length: int) -> str:
    """Return text that any log can hold: bytes that were not UTF-8 arrive as lone surrogates."""
    text = text[:length]
    return text if text.isascii() else text.encode(errors="replace").decode()
