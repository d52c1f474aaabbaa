"""Vending messages from the domain."""

from __future__ import annotations

from gateway.domain.credential import (
    AwsTempCredentials,
    AzureDelegationKey,
    AzureUserDelegationSas,
    Credential,
    GcpOauthToken,
)
from gateway.domain.location import Location
from gateway.errors import Internal
from gateway.v1 import vending_pb2 as pb


def to_proto(credential: Credential, location: Location) -> pb.IssueResponse:
    response = pb.IssueResponse(
        location=str(location),
        expires_at_ms=int(credential.expires_at.timestamp() * 1000),
        credential_id=credential.id,
    )
    match credential.secret:
        case AwsTempCredentials() as aws:
            response.aws.CopyFrom(_aws(aws))
        case AzureUserDelegationSas() as azure:
            response.azure.CopyFrom(pb.AzureUserDelegationSas(sas_token=azure.sas_token))
        case GcpOauthToken() as gcp:
            response.gcp.CopyFrom(pb.GcpOauthToken(oauth_token=gcp.oauth_token))
        case AzureDelegationKey():
            # It signs for a whole account, and is never anybody's but ours.
            raise Internal("internal error")
    return response


def _aws(credential: AwsTempCredentials) -> pb.AwsTempCredentials:
    return pb.AwsTempCredentials(
        access_key_id=credential.access_key_id,
        secret_access_key=credential.secret_access_key,
        session_token=credential.session_token,
        region=credential.region,
        endpoint=credential.endpoint,
    )
