"""Credentials that open one directory, as the gateway answers them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias

from sluice_recipient.errors import Unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsKeys:
    """Session keys for S3, or for a store that speaks S3 at ``endpoint``."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False)
    region: str | None = None
    endpoint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureSas:
    """A shared access signature of one directory."""

    sas_token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GcpToken:
    """A downscoped OAuth token."""

    oauth_token: str = field(repr=False)


Secret: TypeAlias = AwsKeys | AzureSas | GcpToken


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What opens ``location`` until ``expires_at``, and nothing else."""

    location: str
    secret: Secret
    expires_at: datetime


def parse_credential(answer: object) -> Credential:
    """Return the credential of a ``temporary-table-credentials`` answer."""
    try:
        content: Mapping[str, Any] = answer["credentials"]  # type: ignore[index]
        return Credential(
            location=_text(content, "location"),
            secret=_secret(content),
            expires_at=datetime.fromtimestamp(int(content["expirationTime"]) / 1000, UTC),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        # Without the cause: it may quote a secret.
        raise Unavailable(
            "the gateway's answer is not a credential; is the endpoint the right one?"
        ) from None


def _secret(content: Mapping[str, Any]) -> Secret:
    if aws := content.get("awsTempCredentials"):
        return AwsKeys(
            access_key_id=_text(aws, "accessKeyId"),
            secret_access_key=_text(aws, "secretAccessKey"),
            session_token=_text(aws, "sessionToken"),
            region=_optional_text(aws, "region"),
            endpoint=_optional_text(aws, "endpoint"),
        )
    if azure := content.get("azureUserDelegationSas"):
        return AzureSas(sas_token=_text(azure, "sasToken"))
    return GcpToken(oauth_token=_text(content["gcpOauthToken"], "oauthToken"))


def _text(content: Mapping[str, Any], name: str) -> str:
    value = content[name]
    if not isinstance(value, str) or not value:
        raise ValueError(name)
    return value


def _optional_text(content: Mapping[str, Any], name: str) -> str | None:
    return _text(content, name) if content.get(name) else None
