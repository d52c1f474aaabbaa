"""Which platform service is at the other end of a call."""

from __future__ import annotations

from gateway.domain.principal import PlatformService, Principal
from gateway.errors import SERVICE_REFUSED, PermissionDenied, Unauthenticated
from gateway.ports import Clock, ServiceDirectory
from gateway.rpc.peer import Peer
from gateway.rpc.service_token import ServiceTokens


class ServiceCallers:
    """Knows services by their certificates, by the JWTs that they send along, or by both together."""

    def __init__(self, directory: ServiceDirectory, clock: Clock) -> None:
        self._directory = directory
        self._tokens = ServiceTokens(directory, clock)

    async def identify(self, peer: Peer, called: str) -> Principal | None:
        """Return who calls the service of that full name; None for one that claims to be no platform service.

        Raise for one that is none of ours.
        """
        claims_to_be_one = peer.bearer or peer.certified or peer.certificate_names
        if peer.local or not claims_to_be_one:
            return None
        # A token is the more precise of the two: behind a mesh, a certificate may name a proxy.
        if peer.bearer:
            service = await self._tokens.identify(peer.bearer, called)
        else:
            service = await self._by_certificate(peer)
        _check_proof_is_whole(service, peer)
        if service.principal.disabled:
            raise PermissionDenied(
                f"the service {service.principal.name!r} is disabled", error_code=SERVICE_REFUSED
            )
        return service.principal

    async def _by_certificate(self, peer: Peer) -> PlatformService:
        service = await self._directory.find_service_by_certificate(peer.certificate_names)
        if service is None:
            raise Unauthenticated(
                "the client certificate belongs to no configured service", error_code=SERVICE_REFUSED
            )
        return service


def _check_proof_is_whole(service: PlatformService, peer: Peer) -> None:
    # Whoever took one of the two has not become the service.
    if service.certificate and service.certificate not in peer.certificate_names:
        raise Unauthenticated(
            "the client certificate is not that of the service which the token names",
            error_code=SERVICE_REFUSED,
        )
    if service.public_keys and not peer.bearer:
        raise Unauthenticated(
            "the service of the client certificate has to send a token as well", error_code=SERVICE_REFUSED
        )
