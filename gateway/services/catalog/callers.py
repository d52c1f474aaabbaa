"""Who is asking: from what the transport vouches for and what the caller presented to a principal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, NoReturn

from gateway.domain.principal import Permission, Principal
from gateway.errors import SERVICE_REFUSED, NotFound, PermissionDenied, Unauthenticated
from gateway.ports import CatalogStore, Clock
from gateway.rpc.caller import ServiceCallers
from gateway.rpc.peer import Peer
from gateway.services.catalog.quoting import quoted
from gateway.v1 import catalog_pb2 as pb

# What tokens for this service name as their audience.
CATALOG: Final = pb.DESCRIPTOR.services_by_name["Catalog"].full_name

# What a platform service must be permitted, by what it presents.
_NEEDED: Final = {
    "token_sha256": Permission.EDGE,
    "identity": Permission.EDGE,
    "recipient": Permission.ACT_FOR_RECIPIENTS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Who is at the other end of the call, before it is known whom it is made for."""

    local: bool
    # None for this process, and for a plaintext peer on this machine.
    service: Principal | None = None

    @property
    def edge(self) -> bool:
        return self.local or (self.service is not None and Permission.EDGE in self.service.permissions)

    def asks_as_edge(self, caller: pb.Caller) -> bool:
        """Tell whether the visitor asks what edges ask; for the rest, an edge is a service like any other."""
        presented = caller.WhichOneof("presented")
        return self.edge and (self.local or _NEEDED.get(presented or "") is Permission.EDGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Whom a call is made for, and through whom."""

    principal: Principal
    # The platform service that acts for the principal; empty when the principal asks itself.
    actor: str = ""
    # An edge keeps the audit log of what recipients ask of it.
    edge: bool


class Callers:
    """Decides which principal a call is made for."""

    def __init__(self, store: CatalogStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._services = ServiceCallers(store, clock)
        self._finders: dict[str, Callable[[pb.Caller], Awaitable[Principal]]] = {
            "token_sha256": self._by_token,
            "identity": self._by_identity,
            "recipient": self._by_name,
        }

    async def meet(self, peer: Peer) -> Visitor:
        """Return who calls; raise when it claims to be a platform service and is none of ours."""
        return Visitor(local=peer.local, service=await self._services.identify(peer, CATALOG))

    async def identify(self, visitor: Visitor, caller: pb.Caller) -> Asker:
        """Return whom the visitor asks for; raise when that is nobody, or not the visitor's to ask for."""
        presented = caller.WhichOneof("presented")
        service = visitor.service
        if presented is None:
            return Asker(principal=service or _refuse_unknown(), edge=False)
        _check_may_present(presented, visitor)
        principal = await self._finders[presented](caller)
        if service is not None and presented == "recipient":
            return Asker(principal=principal, actor=service.name, edge=False)
        return Asker(principal=principal, edge=visitor.edge)

    async def _by_token(self, caller: pb.Caller) -> Principal:
        return _enabled(await self._store.find_by_token(caller.token_sha256, self._clock()))

    async def _by_identity(self, caller: pb.Caller) -> Principal:
        identity = caller.identity
        return _enabled(await self._store.find_by_identity(identity.issuer, identity.subject))

    async def _by_name(self, caller: pb.Caller) -> Principal:
        principal = await self._store.find_recipient(caller.recipient)
        if principal is None or principal.disabled:
            raise NotFound(f"recipient {quoted(caller.recipient)} does not exist")
        return principal


def _check_may_present(presented: str, visitor: Visitor) -> None:
    service = visitor.service
    if service is not None:
        needed = _NEEDED[presented]
        if needed not in service.permissions:
            raise PermissionDenied(
                f"the service {quoted(service.name)} lacks the permission {needed}",
                error_code=SERVICE_REFUSED,
            )
    elif not visitor.local and presented != "token_sha256":
        _refuse_unknown()


def _enabled(principal: Principal | None) -> Principal:
    if principal is None:
        _refuse_unknown()
    if principal.disabled:
        raise PermissionDenied(
            f"recipient {quoted(principal.name)} is disabled, please contact your share provider"
        )
    return principal


def _refuse_unknown() -> NoReturn:
    # The same words for all: which of these it was is nobody's business but its owner's.
    raise Unauthenticated("the bearer token is missing, unknown or expired")
