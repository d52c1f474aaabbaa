"""The Vending service: a grant in, a credential out."""

from __future__ import annotations

from typing import Any

from grpc import aio

from gateway.domain.grant import Grant
from gateway.domain.location import Location
from gateway.domain.scope import Scope
from gateway.domain.table import AccessMode
from gateway.errors import Unavailable, Unsupported
from gateway.ports import Clock, CredentialIssuer, Storage, Storages
from gateway.rpc.grant import GrantVerifier
from gateway.services.vending.codec import to_proto
from gateway.v1 import vending_pb2 as pb
from gateway.v1 import vending_pb2_grpc


class VendingServicer(vending_pb2_grpc.VendingServicer):
    """Issues credentials for the grant's locations, and no other."""

    def __init__(self, *, storages: Storages, verifier: GrantVerifier, clock: Clock) -> None:
        self._storages = storages
        self._verifier = verifier
        self._clock = clock

    async def Issue(
        self, request: pb.IssueRequest, context: aio.ServicerContext[Any, Any]
    ) -> pb.IssueResponse:
        grant = self._verifier.verify(request.grant)
        grant.require(AccessMode.DIR)
        # A directory holds all versions: a credential cannot hide those that are not shared.
        if not grant.history_shared or grant.start_version:
            raise Unsupported(
                f"table {grant.table} is not shared with its full history, which dir access needs"
            )
        location = grant.location_at(request.location)
        storage, issuer = self._find(grant, location)
        if location.is_root and not storage.allow_root:
            raise Unsupported(
                f"table {grant.table} is the root of its bucket or container, which dir access does not open "
                "unless its storage says allowRoot"
            )
        credential = await issuer.issue(_scope(grant, location, storage, issuer))
        if credential.expires_at <= self._clock():
            raise Unavailable("the storage's credential has expired already; try again later")
        return to_proto(credential, location)

    def _find(self, grant: Grant, location: Location) -> tuple[Storage, CredentialIssuer]:
        storage = self._storages.find(location)
        if storage is None:
            raise Unsupported(f"table {grant.table} is not on a storage that the gateway is configured for")
        if storage.issuer is None:
            raise Unsupported(f"table {grant.table} is on a storage that cannot issue temporary credentials")
        return storage, storage.issuer


def _scope(grant: Grant, location: Location, storage: Storage, issuer: CredentialIssuer) -> Scope:
    if not issuer.names_recipients:
        return Scope(location=location, life=storage.credential_life)
    return Scope(
        location=location,
        recipient=grant.principal,
        life=storage.credential_life,
        revoked_at=grant.revoked_at,
    )
