"""How a storage entry names the gateway's own identity where the SDK is botocore."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from vendors.options import Options, SecretOptions, Text, check_options

_KINDS: Final = "keys, profile, webIdentity, chain"


class AssumeRoleOptions(Options):
    """A role that the gateway itself works as."""

    arn: Text
    external_id: Text | None = None
    session_name: Text = "sluice"


class _IdentityOptions(Options):
    assume_role: AssumeRoleOptions | None = None

    @property
    def is_role(self) -> bool:
        """Tell whether it is known to be a role's session itself, whose sessions AWS cuts at an hour."""
        return self.assume_role is not None


class KeysOptions(_IdentityOptions):
    kind: Literal["keys"]
    access_key_id: SecretOptions | Text
    secret_access_key: SecretOptions
    session_token: SecretOptions | None = None


class ProfileOptions(_IdentityOptions):
    kind: Literal["profile"]
    name: Text
    # A shared credentials file in place of those in the home directory.
    file: Text | None = None


class WebIdentityOptions(_IdentityOptions):
    kind: Literal["webIdentity"]
    role_arn: Text
    token_file: Text
    session_name: Text = "sluice"

    @property
    def is_role(self) -> bool:
        return True


class ChainOptions(_IdentityOptions):
    kind: Literal["chain"]


_PLACE: Final = r"[^/?#@\s]+$"
_LOOPBACK: Final = r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$"
# Answers of a token service hold secret keys: in the clear they stay on the machine.
Https = Annotated[str, Field(pattern=rf"^(https://{_PLACE}|http://{_LOOPBACK})")]
Url = Annotated[str, Field(pattern=rf"^https?://{_PLACE}")]

AnyIdentity = KeysOptions | ProfileOptions | WebIdentityOptions | ChainOptions
AwsIdentity = Annotated[AnyIdentity, Field(discriminator="kind")]

# Where a file names no storages, and so no identity.
CHAIN: Final = ChainOptions(kind="chain")


def check_entry(model: type[Options], options: Mapping[str, object]) -> Sequence[str]:
    """Return what is wrong with an entry's options, in words; all of them must say who the gateway is."""
    faults = check_options(model, options)
    identity = options.get("identity")
    if isinstance(identity, Mapping) and "kind" in identity:
        return faults
    missing = f"the option 'identity' is missing, or its kind: {_KINDS}"
    return [missing, *(fault for fault in faults if "identity" not in fault)]


def is_clear(url: str) -> bool:
    """Tell whether what is sent to an address can be read on its way."""
    return url.startswith("http://") and not re.match(rf"http://{_LOOPBACK}", url)
