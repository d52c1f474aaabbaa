"""Credentials as answers: in the protocol's words, and in those of AWS tools."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from gateway.errors import Unsupported
from gateway.v1.catalog_pb2 import Table
from gateway.v1.vending_pb2 import AwsTempCredentials, IssueResponse


def credential_json(issued: IssueResponse, table: Table, *, region_and_endpoint: bool) -> dict[str, Any]:
    """Return the protocol's answer to a request for credentials."""
    blocks = _blocks(issued, with_place=region_and_endpoint)
    if table.r2_credentials and issued.HasField("aws"):
        blocks["r2Credentials"] = _keys(issued.aws)
    return {
        "credentials": {
            "location": issued.location,
            **blocks,
            "expirationTime": issued.expires_at_ms,
        }
    }


def container_json(issued: IssueResponse) -> dict[str, str]:
    """Return the answer that AWS SDKs expect of a container's credentials endpoint."""
    if not issued.HasField("aws"):
        raise Unsupported(
            "the credentials of this table are not of the kind that AWS tools take; "
            "ask for temporary-table-credentials"
        )
    # Whole seconds, which all SDKs can parse, and never later than the truth.
    expires_at = datetime.fromtimestamp(issued.expires_at_ms // 1000, tz=UTC)
    return {
        "AccessKeyId": issued.aws.access_key_id,
        "SecretAccessKey": issued.aws.secret_access_key,
        "Token": issued.aws.session_token,
        "Expiration": f"{expires_at:%Y-%m-%dT%H:%M:%SZ}",
    }


def _blocks(issued: IssueResponse, *, with_place: bool) -> dict[str, dict[str, str]]:
    match issued.WhichOneof("credential"):
        case "aws":
            place = {"region": issued.aws.region, "endpoint": issued.aws.endpoint} if with_place else {}
            known = {name: value for name, value in place.items() if value}
            return {"awsTempCredentials": _keys(issued.aws) | known}
        case "azure":
            return {"azureUserDelegationSas": {"sasToken": issued.azure.sas_token}}
        case _:
            return {"gcpOauthToken": {"oauthToken": issued.gcp.oauth_token}}


def _keys(aws: AwsTempCredentials) -> dict[str, str]:
    return {
        "accessKeyId": aws.access_key_id,
        "secretAccessKey": aws.secret_access_key,
        "sessionToken": aws.session_token,
    }
