"""Temporary credentials: in the three shapes that the protocol knows, and what URLs are signed with."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsTempCredentials:
    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False)
    region: str = ""
    endpoint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureUserDelegationSas:
    sas_token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GcpOauthToken:
    oauth_token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureDelegationKey:
    """What an account lends to sign with; never handed out. The texts are as Azure wrote them."""

    oid: str
    tid: str
    start: str
    expiry: str
    service: str
    version: str
    # In base64, as Azure gives it.
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A provider's credential with the provider's own expiration."""

    # Names it in the audit log; opens nothing.
    id: str
    secret: AwsTempCredentials | AzureUserDelegationSas | GcpOauthToken | AzureDelegationKey
    expires_at: datetime
