"""The options of an Azure storage entry."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from gateway.ports import OptionFault
from vendors.azure.account_key import decode_key
from vendors.http import check_endpoint
from vendors.options import Options, SecretOptions, Text, check_options, matching, parse_options

PUBLIC_AUTHORITY: Final = "https://login.microsoftonline.com"
PUBLIC_MANAGEMENT: Final = "https://management.azure.com"

# Azure refuses a delegation key that lives longer than seven days from its start.
_LONGEST_KEY: Final = timedelta(days=6)
_SHORTEST_KEY: Final = timedelta(minutes=10)
_MOST_SKEW: Final = timedelta(hours=1)

_SPAN: Final = re.compile(r"(\d{1,6})([smhd]?)")
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_NOT_A_KEY: Final = "must be a key of the storage account as Azure shows it, in base64"
_NOTHING_TO_REVOKE: Final = "an account key signs without the delegation keys that this would revoke"


def _span(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    found = _SPAN.fullmatch(str(value)) if isinstance(value, str | int) else None
    if found is None:
        raise ValueError("must be a span of time such as 30s, 5m or 4h")
    return timedelta(seconds=int(found[1]) * _UNITS[found[2]])


def _https(text: str) -> str:
    if not text.startswith("https://"):
        raise ValueError("must be an address that begins with https://")
    return check_endpoint(text)


Span = Annotated[timedelta, BeforeValidator(_span)]
Https = Annotated[Text, AfterValidator(_https)]
Endpoint = Annotated[Text, AfterValidator(check_endpoint)]
Guid = Annotated[
    str,
    matching(
        r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
        "must be a GUID, such as 00000000-0000-0000-0000-000000000000",
    ),
]
ResourceGroup = Annotated[
    str, matching(r"[-\w.()]{1,90}", "must be the name of a resource group: letters, digits and -_.() only")
]


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


class AccountKeyIdentity(Options):
    """The account's own key. It opens the whole account, so that nothing but URLs is signed with it."""

    kind: Literal["accountKey"]
    account_key: SecretOptions

    def disagreements(self) -> Iterator[OptionFault]:
        given = self.account_key.value
        if given is not None and decode_key(given.get_secret_value()) is None:
            yield OptionFault(path=("accountKey", "value"), message=_NOT_A_KEY)


Identity = ClientSecretIdentity | ManagedIdentity | WorkloadIdentity | ChainIdentity | AccountKeyIdentity


class RevocationOptions(Options):
    """Where the account lives for the management API, so that its delegation keys can be revoked there."""

    subscription: Guid
    resource_group: ResourceGroup
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

    def disagreements(self) -> Iterator[OptionFault]:
        if self.clock_skew > _MOST_SKEW:
            yield OptionFault(path=("clockSkew",), message="must be at most 1h")
        if not _SHORTEST_KEY <= self.key_life <= _LONGEST_KEY:
            yield OptionFault(path=("keyLife",), message="must be from 10m to 6d")
        if self.revocation is not None and isinstance(self.identity, AccountKeyIdentity):
            yield OptionFault(path=("revocation",), message=_NOTHING_TO_REVOKE)


def check(options: Mapping[str, object]) -> Sequence[OptionFault]:
    """Return what is wrong with the options."""
    return check_options(AzureOptions, options)


def parse(options: Mapping[str, object]) -> AzureOptions:
    """Return checked options; an entry that nobody wrote is one for the SDK's own chain."""
    return parse_options(AzureOptions, options or {"identity": {"kind": "chain"}})
