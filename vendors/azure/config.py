"""The options of an Azure storage entry."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from ipaddress import ip_address
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from vendors.options import Options, SecretOptions, Text, check_options, parse_options

PUBLIC_AUTHORITY: Final = "https://login.microsoftonline.com"
PUBLIC_MANAGEMENT: Final = "https://management.azure.com"
KINDS: Final = "clientSecret, managedIdentity, workloadIdentity, chain"

# Azure refuses a delegation key that lives longer than seven days from its start.
_LONGEST_KEY: Final = timedelta(days=6)
_SHORTEST_KEY: Final = timedelta(minutes=10)
_MOST_SKEW: Final = timedelta(hours=1)

_SPAN: Final = re.compile(r"(\d{1,6})([smhd]?)")
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def _span(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    found = _SPAN.fullmatch(str(value)) if isinstance(value, str | int) else None
    if found is None:
        raise ValueError("must be a span of time such as 30s, 5m or 4h")
    return timedelta(seconds=int(found[1]) * _UNITS[found[2]])


def _https(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme != "https" or not parts.hostname or not _is_bare(text):
        raise ValueError("must be an address that begins with https://")
    return text.rstrip("/")


def _endpoint(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme == "http" and is_loopback(parts.hostname) and _is_bare(text):
        return text.rstrip("/")
    try:
        return _https(text)
    except ValueError:
        raise ValueError("must begin with https://; http:// is for a loopback address only") from None


def is_loopback(host: str | None) -> bool:
    """Tell whether a host is this machine, by its name or number alone."""
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


def _is_bare(text: str) -> bool:
    parts = urlsplit(text)
    return not (parts.query or parts.fragment or "@" in parts.netloc)


Span = Annotated[timedelta, BeforeValidator(_span)]
Https = Annotated[Text, AfterValidator(_https)]
Endpoint = Annotated[Text, AfterValidator(_endpoint)]
Guid = Annotated[str, Field(pattern=r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")]


class ClientSecretIdentity(Options):
    """An application with a secret."""

    kind: Literal["clientSecret"]
    tenant_id: Text
    client_id: Text
    client_secret: SecretOptions


class ManagedIdentity(Options):
    """The identity of the machine; one of those that were assigned to it where an id is given."""

    kind: Literal["managedIdentity"]
    client_id: Text | None = None


class WorkloadIdentity(Options):
    """A Kubernetes service account; what is not given is what the workload identity webhook put there."""

    kind: Literal["workloadIdentity"]
    tenant_id: Text | None = None
    client_id: Text | None = None
    token_file: Text | None = None


class ChainIdentity(Options):
    """Whatever the SDK's own chain finds first."""

    kind: Literal["chain"]


Identity = ClientSecretIdentity | ManagedIdentity | WorkloadIdentity | ChainIdentity


class RevocationOptions(Options):
    """Where the account lives for the management API, so that its delegation keys can be revoked there."""

    subscription: Guid
    resource_group: Annotated[str, Field(pattern=r"^[-\w.()]{1,90}$")]
    endpoint: Https = PUBLIC_MANAGEMENT


class AzureOptions(Options):
    identity: Annotated[Identity, Field(discriminator="kind")]
    authority: Https = PUBLIC_AUTHORITY
    blob_endpoint: Endpoint | None = None
    ca_file: Text | None = None
    # No default: only the operator knows, and a credential for a directory needs one.
    hierarchical_namespace: bool | None = None
    # What a SAS opens then is the whole container, whatever the table.
    container_scope: Literal["accept"] | None = None
    correlation_id: bool = True
    clock_skew: Span = timedelta(minutes=5)
    key_life: Span = timedelta(hours=4)
    revocation: RevocationOptions | None = None

    @model_validator(mode="before")
    @classmethod
    def _names_an_identity(cls, data: Any) -> Any:
        identity = data.get("identity") if isinstance(data, Mapping) else None
        if not isinstance(identity, Mapping) or "kind" not in identity:
            raise ValueError(f"the option 'identity' is missing: give identity.kind, one of {KINDS}")
        return data

    @model_validator(mode="after")
    def _spans_are_sane(self) -> Self:
        if self.clock_skew > _MOST_SKEW:
            raise ValueError("clockSkew must be at most 1h")
        if not _SHORTEST_KEY <= self.key_life <= _LONGEST_KEY:
            raise ValueError("keyLife must be between 10m and 6d")
        return self


def check(options: Mapping[str, object]) -> Sequence[str]:
    """Return what is wrong with the options, in words."""
    return check_options(AzureOptions, options)


def parse(options: Mapping[str, object]) -> AzureOptions:
    """Return checked options; an entry that nobody wrote is one for the SDK's own chain."""
    return parse_options(AzureOptions, options or {"identity": {"kind": "chain"}})
