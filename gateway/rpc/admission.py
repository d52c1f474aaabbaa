"""Admits the calls of platform services: who it is, what it may call, how often and how many at once."""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

from gateway.domain.audit import AuditEvent, AuditKind
from gateway.domain.principal import Principal
from gateway.domain.rate import Rate
from gateway.errors import SERVICE_REFUSED, GatewayError, PermissionDenied, Throttled
from gateway.ports import AuditLog, CallerMetrics, Clock, RateBuckets, ServiceDirectory
from gateway.rpc.caller import ServiceCallers
from gateway.rpc.metadata import request_id_of
from gateway.rpc.peer import Peer, peer_of
from gateway.rpc.status import OUR_METHODS, OUR_PACKAGE, Context, Handler, OurInterceptor

# For each certificate that proves no service, or each address: a refusal at the catalog costs an audit event.
STRANGERS: Final = Rate(requests_per_second=10, burst=100)

_CATALOG: Final = "Catalog."

log = logging.getLogger(__name__)


class Gate:
    """Holds each platform service to its allowance, in this process.

    Where no service is configured, nor was since the start, grants alone decide: whoever the transport lets
    in may call. A reload that removes the last service opens the gate to nobody.
    """

    def __init__(
        self,
        directory: ServiceDirectory,
        buckets: RateBuckets,
        metrics: CallerMetrics,
        audit: AuditLog | None,
        clock: Clock,
    ) -> None:
        self._directory = directory
        self._callers = ServiceCallers(directory, clock)
        self._buckets = buckets
        self._metrics = metrics
        # None where the process keeps none.
        self._audit = audit
        self._clock = clock
        self._under_way: Counter[str] = Counter()
        self._told: set[tuple[str, str]] = set()

    @asynccontextmanager
    async def entered(self, method: str, context: Context) -> AsyncIterator[None]:
        """Count a call of ``Service.Method`` for as long as it lasts; raise for one that may not be made."""
        service = await self._identify(method, context)
        if service is None:
            yield
            return
        # First, so that what is not listed is no way around the quota: each refusal costs an audit event.
        self._check_quota(service)
        self._under_way[service.name] += 1
        try:
            self._check_method(service, method, context)
            yield
        finally:
            self._under_way[service.name] -= 1
            if not self._under_way[service.name]:
                del self._under_way[service.name]

    async def _identify(self, method: str, context: Context) -> Principal | None:
        peer = peer_of(context)
        try:
            return await self._callers.identify(peer, OUR_PACKAGE + method.partition(".")[0])
        except GatewayError:
            at_catalog = method.startswith(_CATALOG)
            if not at_catalog and not self._directory.has_had_services:
                return None
            self._metrics.count_refused_call("", "identity")
            self._charge_stranger(peer, context)
            # The catalog refuses strangers itself, and its audit log says what they asked for.
            if at_catalog:
                return None
            raise

    def _charge_stranger(self, peer: Peer, context: Context) -> None:
        # No service is called so: names are printable. Of an address all ports are one stranger.
        known_by = peer.certificate_names or (context.peer().rpartition(":")[0],)
        wait = self._buckets.take("\n".join(("", *known_by)), STRANGERS)
        if wait is not None:
            raise Throttled("too many calls by who is no configured service", retry_after=wait)

    def _check_method(self, service: Principal, method: str, context: Context) -> None:
        if service.allowance.permits(method):
            return
        self._metrics.count_refused_call(service.name, "method")
        self._note_denial(service, method, context)
        raise PermissionDenied(
            f"the service {service.name!r} may not call {method}", error_code=SERVICE_REFUSED
        )

    def _check_quota(self, service: Principal) -> None:
        allowance = service.allowance
        most = allowance.concurrent_calls
        # Before the rate: a call that is refused for this costs no token.
        if most is not None and self._under_way[service.name] >= most:
            self._metrics.count_refused_call(service.name, "concurrency")
            raise Throttled(f"the service {service.name!r} has {most} calls under way, as many as it may")
        if allowance.rate is None:
            return
        wait = self._buckets.take(service.name, allowance.rate)
        if wait is not None:
            self._metrics.count_refused_call(service.name, "rate")
            raise Throttled(f"the service {service.name!r} calls too often", retry_after=wait)

    def _note_denial(self, service: Principal, method: str, context: Context) -> None:
        if (service.name, method) not in self._told:
            self._told.add((service.name, method))
            log.warning("the service %s may not call %s: such calls are refused", service.name, method)
        if self._audit is not None:
            called, _, name = method.partition(".")
            event = AuditEvent(
                id=uuid.uuid4().hex,
                at=self._clock(),
                kind=AuditKind.DENIAL,
                operation=f"{called.lower()}.{name}",
                outcome=SERVICE_REFUSED,
                actor=service.name,
                request_id=request_id_of(context),
                remote=context.peer(),
            )
            self._audit.note(event)


class AdmissionInterceptor(OurInterceptor):
    """Puts a gate before our handlers; health and reflection stay open."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def wrap(self, handler: Handler, method: str) -> Handler:
        name = method.removeprefix(OUR_METHODS).replace("/", ".")
        if handler.unary_unary:
            return handler._replace(unary_unary=_admit_unary(handler.unary_unary, name, self._gate))
        return handler._replace(unary_stream=_admit_stream(handler.unary_stream, name, self._gate))


def _admit_unary(
    method: Callable[[Any, Context], Awaitable[Any]], name: str, gate: Gate
) -> Callable[[Any, Context], Awaitable[Any]]:
    async def admitted(request: Any, context: Context) -> Any:
        async with gate.entered(name, context):
            return await method(request, context)

    return admitted


def _admit_stream(
    method: Callable[[Any, Context], AsyncGenerator[Any]], name: str, gate: Gate
) -> Callable[[Any, Context], AsyncIterator[Any]]:
    async def admitted(request: Any, context: Context) -> AsyncIterator[Any]:
        async with gate.entered(name, context), aclosing(method(request, context)) as messages:
            async for message in messages:
                yield message

    return admitted
