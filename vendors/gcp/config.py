"""The options of a storage entry on Google Cloud Storage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from gateway.ports import OptionFault
from vendors.http import check_endpoint
from vendors.options import Options, SecretOptions, Text, check_options, matching, parse_options

_DEFAULT: Final = {"identity": {"kind": "chain"}}

Endpoint = Annotated[str, AfterValidator(check_endpoint)]
# It becomes part of an address.
Email = Annotated[
    str,
    matching(
        r"[A-Za-z0-9._-]+@[A-Za-z0-9.-]+",
        "must be the address of a service account, such as NAME@PROJECT.iam.gserviceaccount.com",
    ),
]
Domain = Annotated[
    str, matching(r"[a-z0-9-]+(\.[a-z0-9-]+)+", "must be the name of a domain, such as googleapis.com")
]


class ImpersonateOptions(Options):
    service_account: Email
    delegates: list[Email] = Field(default_factory=list)


class ServiceAccountOptions(Options):
    kind: Literal["serviceAccount"]
    key_file: Text | None = None
    key: SecretOptions | None = None
    impersonate: ImpersonateOptions | None = None

    def disagreements(self) -> Iterator[OptionFault]:
        if (self.key_file is None) == (self.key is None):
            yield OptionFault(message="give either keyFile or key")


class WorkloadIdentityOptions(Options):
    kind: Literal["workloadIdentity"]
    config_file: Text
    impersonate: ImpersonateOptions | None = None


class MetadataOptions(Options):
    kind: Literal["metadata"]
    service_account: Email | None = None
    impersonate: ImpersonateOptions | None = None


class ChainOptions(Options):
    kind: Literal["chain"]
    impersonate: ImpersonateOptions | None = None


IdentityOptions = ServiceAccountOptions | WorkloadIdentityOptions | MetadataOptions | ChainOptions


class GcpOptions(Options):
    identity: Annotated[IdentityOptions, Field(discriminator="kind")]
    universe_domain: Domain = "googleapis.com"
    sts_endpoint: Endpoint | None = None
    iam_endpoint: Endpoint | None = None
    storage_endpoint: Endpoint | None = None
    ca_file: Text | None = None

    @property
    def sts_url(self) -> str:
        return f"{self.sts_endpoint or f'https://sts.{self.universe_domain}'}/v1/token"

    @property
    def storage_url(self) -> str:
        return self.storage_endpoint or f"https://storage.{self.universe_domain}"


def check(options: Mapping[str, object]) -> Sequence[OptionFault]:
    """Return what is wrong with the options."""
    return check_options(GcpOptions, options)


def parse(options: Mapping[str, object]) -> GcpOptions:
    """Return the options; none at all stand for the chain, as a file without storages means it."""
    return parse_options(GcpOptions, options or _DEFAULT)
