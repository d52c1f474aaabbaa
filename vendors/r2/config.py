"""The options of a storage entry on Cloudflare R2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal

from pydantic import AfterValidator

from gateway.ports import OptionFault
from vendors.http import check_endpoint
from vendors.options import Options, SecretOptions, check_options, matching, parse_options

# The one region of R2, by which its requests are signed.
REGION: Final = "auto"

Endpoint = Annotated[str, AfterValidator(check_endpoint)]
# Both become part of an address.
AccountId = Annotated[
    str, matching(r"[0-9a-z]{1,32}", "must be the id of an account: small letters and digits only")
]
AccessKeyId = Annotated[
    str, matching(r"[0-9A-Za-z]{1,64}", "must be the id of an access key: letters and digits only")
]


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

    def disagreements(self) -> Iterator[OptionFault]:
        if (self.mint == "api") != (self.api_token is not None):
            yield OptionFault(path=("apiToken",), message="is for mint: api, which needs it")

    @property
    def endpoint_url(self) -> str:
        """Return where the buckets are, for recipients too."""
        host = f"{self.account_id}.{self.jurisdiction}" if self.jurisdiction else self.account_id
        return self.endpoint or f"https://{host}.r2.cloudflarestorage.com"


def check(options: Mapping[str, object]) -> Sequence[OptionFault]:
    """Return what is wrong with the options."""
    return check_options(R2Options, options)


def parse(options: Mapping[str, object]) -> R2Options:
    """Return options that were checked before."""
    return parse_options(R2Options, options)
