"""The options of a storage entry on Cloudflare R2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from vendors.http import check_endpoint
from vendors.options import Options, SecretOptions, check_options, parse_options

# The one region of R2, by which its requests are signed.
REGION: Final = "auto"

Endpoint = Annotated[str, AfterValidator(check_endpoint)]
# Both become part of an address.
AccountId = Annotated[str, Field(pattern=r"^[0-9a-z]{1,32}$")]
AccessKeyId = Annotated[str, Field(pattern=r"^[0-9A-Za-z]{1,64}$")]


class KeysOptions(Options):
    """The S3 keys of an R2 API token, which is the parent of all that is issued."""

    kind: Literal["keys"]
    access_key_id: AccessKeyId
    secret_access_key: SecretOptions


class RevocationOptions(Options):
    """Whether an emergency may delete the parent, and with whose permission."""

    delete_parent_token: bool
    # Whose the parent is: Cloudflare keeps the tokens of accounts and of users apart.
    owner: Literal["account", "user"] = "account"
    api_token: SecretOptions


class R2Options(Options):
    account_id: AccountId
    identity: KeysOptions
    jurisdiction: Literal["eu", "fedramp"] | None = None
    mint: Literal["local", "api"] = "local"
    api_token: SecretOptions | None = None
    revocation: RevocationOptions | None = None
    endpoint: Endpoint | None = None
    api_endpoint: Endpoint = "https://api.cloudflare.com/client/v4"

    @model_validator(mode="before")
    @classmethod
    def _names_an_identity(cls, options: Any) -> Any:
        identity = options.get("identity") if isinstance(options, Mapping) else None
        if not isinstance(identity, Mapping) or identity.get("kind") != "keys":
            raise ValueError("identity.kind is keys, with accessKeyId and secretAccessKey")
        return options

    @model_validator(mode="after")
    def _has_its_token(self) -> Self:
        if (self.mint == "api") != (self.api_token is not None):
            raise ValueError("apiToken belongs to mint: api, which needs it")
        return self

    @property
    def endpoint_url(self) -> str:
        """Return where the buckets are, for recipients too."""
        host = f"{self.account_id}.{self.jurisdiction}" if self.jurisdiction else self.account_id
        return self.endpoint or f"https://{host}.r2.cloudflarestorage.com"


def check(options: Mapping[str, object]) -> Sequence[str]:
    """Return what is wrong with the options, in words."""
    return check_options(R2Options, options)


def parse(options: Mapping[str, object]) -> R2Options:
    """Return options that were checked before."""
    return parse_options(R2Options, options)
