"""Which platform service is at the other end of a call."""

from __future__ import annotations

from gateway.domain.principal import Principal
from gateway.errors import SERVICE_REFUSED, PermissionDenied, Unauthenticated
from gateway.ports import Clock, ServiceDirectory
from gateway.rpc.peer import Peer
from gateway.rpc.service_token import ServiceTokens


class ServiceCallers:
    """Knows services by their certificates, or by the JWTs that they send along."""

    def __init__(self, directory: ServiceDirectory, clock: Clock) -> None:
        self._directory = directory
        self._tokens = ServiceTokens(directory, clock)

    async def identify(self, peer: Peer) -> Principal | None:
        """Return the service; None for one that claims to be none; raise for one that is none of ours."""
        claims_to_be_one = peer.bearer or peer.certified or peer.certificate_names
        if peer.local or not claims_to_be_one:
            return None
        # A token is the more precise of the two: behind a mesh, a certificate may name a proxy.
        if peer.bearer:
            service = await self._tokens.identify(peer.bearer)
        else:
            service = await self._by_certificate(peer)
        if service.disabled:
            raise PermissionDenied(f"the service {service.name!r} is disabled", error_code=SERVICE_REFUSED)
        return service

    async def _by_certificate(self, peer: Peer) -> Principal:
        service = await self._directory.find_service_by_certificate(peer.certificate_names)
        if service is None:
            raise Unauthenticated(
                "the client certificate belongs to no configured service", error_code=SERVICE_REFUSED
            )
        return service
