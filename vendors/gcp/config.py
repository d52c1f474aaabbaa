"""The options of a storage entry on Google Cloud Storage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, Self

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
AccessId = Annotated[
    str, matching(r"[A-Za-z0-9]+", "must be the access ID of an HMAC key, which begins with GOOG")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A service account, and those by which it is reached: each is a token creator of the next."""

    email: str
    delegates: tuple[str, ...] = ()


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

    def read_key(self) -> str:
        """Return the key's JSON as it is now; raise ``OSError`` when its file cannot be read."""
        if self.key is not None:
            return self.key.read()
        return Path(self.key_file or "").read_text(encoding="utf-8")


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


class HmacOptions(Options):
    kind: Literal["hmac"]
    access_id: AccessId
    secret: SecretOptions


class SignBlobOptions(Options):
    kind: Literal["signBlob"]
    service_account: Email | None = None
    delegates: list[Email] = Field(default_factory=list)

    def disagreements(self) -> Iterator[OptionFault]:
        if self.delegates and self.service_account is None:
            yield OptionFault(path=("delegates",), message="leads to a serviceAccount, which is missing")


SigningOptions = HmacOptions | SignBlobOptions


class GcpOptions(Options):
    identity: Annotated[IdentityOptions, Field(discriminator="kind")]
    signing: Annotated[SigningOptions, Field(discriminator="kind")] | None = None
    universe_domain: Domain = "googleapis.com"
    sts_endpoint: Endpoint | None = None
    iam_endpoint: Endpoint | None = None
    storage_endpoint: Endpoint | None = None
    ca_file: Text | None = None

    def disagreements(self) -> Iterator[OptionFault]:
        if isinstance(self.signing, SignBlobOptions) and self.signing_account is None:
            yield OptionFault(
                path=("signing", "serviceAccount"),
                message="is missing: the identity does not name the account to sign as",
            )

    @property
    def account(self) -> Account | None:
        """Return the service account that the storage is read as, where the settings name it."""
        if (target := self.identity.impersonate) is not None:
            return Account(email=target.service_account, delegates=tuple(target.delegates))
        if isinstance(self.identity, MetadataOptions) and self.identity.service_account is not None:
            return Account(email=self.identity.service_account)
        return None

    @property
    def signing_account(self) -> Account | None:
        """Return the service account that Google signs as, where the settings name it."""
        signing = self.signing
        if isinstance(signing, SignBlobOptions) and signing.service_account is not None:
            return Account(email=signing.service_account, delegates=tuple(signing.delegates))
        return self.account

    def without_impersonation(self) -> Self:
        """Return the same options for the identity itself."""
        return self.model_copy(update={"identity": self.identity.model_copy(update={"impersonate": None})})

    @property
    def sts_url(self) -> str:
        return f"{self.sts_endpoint or f'https://sts.{self.universe_domain}'}/v1/token"

    @property
    def iam_url(self) -> str:
        return self.iam_endpoint or f"https://iamcredentials.{self.universe_domain}"

    @property
    def storage_url(self) -> str:
        return self.storage_endpoint or f"https://storage.{self.universe_domain}"


def check(options: Mapping[str, object]) -> Sequence[OptionFault]:
    """Return what is wrong with the options."""
    return check_options(GcpOptions, options)


def parse(options: Mapping[str, object]) -> GcpOptions:
    """Return the options; none at all stand for the chain, as a file without storages means it."""
    return parse_options(GcpOptions, options or _DEFAULT)
