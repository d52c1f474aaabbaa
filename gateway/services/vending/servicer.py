"""The Vending service: a grant in, a credential out."""

from __future__ import annotations

import logging
import traceback
from typing import Any

from grpc import aio

from gateway.domain.credential import (
    AwsTempCredentials,
    AzureDelegationKey,
    AzureUserDelegationSas,
    Credential,
    GcpOauthToken,
)
from gateway.domain.grant import Grant
from gateway.domain.location import Location
from gateway.domain.scope import Scope
from gateway.domain.table import AccessMode
from gateway.errors import GatewayError, Internal, Unavailable, Unsupported
from gateway.ports import Clock, CredentialIssuer, Storage, Storages
from gateway.rpc.grant import GrantVerifier
from gateway.services.vending.codec import to_proto
from gateway.v1 import vending_pb2 as pb
from gateway.v1 import vending_pb2_grpc

log = logging.getLogger(__name__)


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
        if not grant.opens_directory:
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
        credential = await _issued(storage, issuer, _scope(grant, location, storage, issuer))
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


async def _issued(storage: Storage, issuer: CredentialIssuer, scope: Scope) -> Credential:
    """Return what the issuer gives, if it is a whole credential; what it did not foresee stays here."""
    try:
        credential = await issuer.issue(scope)
    except GatewayError:
        raise
    except Exception as exc:  # noqa: BLE001 -- a vendor may raise anything
        # Where it failed, and not its words: those may repeat what a provider answered.
        stack = "".join(traceback.format_tb(exc.__traceback__))
        log.error("storage %s failed to issue: %s\n%s", storage.name, type(exc).__name__, stack)  # noqa: TRY400
        raise Internal("internal error") from None
    if not all((credential.id, *_parts(credential))):
        log.error("storage %s issued a credential that is not whole", storage.name)
        raise Internal("internal error")
    return credential


def _parts(credential: Credential) -> tuple[str, ...]:
    match credential.secret:
        case AwsTempCredentials() as aws:
            return aws.access_key_id, aws.secret_access_key, aws.session_token
        case AzureUserDelegationSas() as azure:
            return (azure.sas_token,)
        case GcpOauthToken() as gcp:
            return (gcp.oauth_token,)
        case AzureDelegationKey():
            # Nothing of it is for a recipient.
            return ("",)


def _scope(grant: Grant, location: Location, storage: Storage, issuer: CredentialIssuer) -> Scope:
    if not issuer.names_recipients:
        return Scope(location=location, life=storage.credential_life)
    return Scope(
        location=location,
        recipient=grant.principal,
        life=storage.credential_life,
        revoked_at=grant.revoked_at,
    )
