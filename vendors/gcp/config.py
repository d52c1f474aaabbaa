"""The options of a storage entry on Google Cloud Storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from vendors.http import check_endpoint
from vendors.options import Options, SecretOptions, Text, check_options, parse_options

_KINDS: Final = ("serviceAccount", "workloadIdentity", "metadata", "chain")
_DEFAULT: Final = {"identity": {"kind": "chain"}}

Endpoint = Annotated[str, AfterValidator(check_endpoint)]
# It becomes part of an address.
Email = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+@[A-Za-z0-9.-]+$")]
Domain = Annotated[str, Field(pattern=r"^[a-z0-9-]+(\.[a-z0-9-]+)+$")]


class ImpersonateOptions(Options):
    service_account: Email
    delegates: list[Email] = Field(default_factory=list)


class ServiceAccountOptions(Options):
    kind: Literal["serviceAccount"]
    key_file: Text | None = None
    key: SecretOptions | None = None
    impersonate: ImpersonateOptions | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.key_file is None) == (self.key is None):
            raise ValueError("give either keyFile or key")
        return self


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

    @model_validator(mode="before")
    @classmethod
    def _names_an_identity(cls, options: Any) -> Any:
        identity = options.get("identity") if isinstance(options, Mapping) else None
        if not isinstance(identity, Mapping) or identity.get("kind") not in _KINDS:
            raise ValueError(f"identity.kind is one of {', '.join(_KINDS)}")
        return options

    @property
    def sts_url(self) -> str:
        return f"{self.sts_endpoint or f'https://sts.{self.universe_domain}'}/v1/token"

    @property
    def storage_url(self) -> str:
        return self.storage_endpoint or f"https://storage.{self.universe_domain}"


def check(options: Mapping[str, object]) -> Sequence[str]:
    """Return what is wrong with the options, in words."""
    return check_options(GcpOptions, options)


def parse(options: Mapping[str, object]) -> GcpOptions:
    """Return the options; none at all stand for the chain, as a file without storages means it."""
    return parse_options(GcpOptions, options or _DEFAULT)
