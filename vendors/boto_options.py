"""How a storage entry names the gateway's own identity where the SDK is botocore."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import Field

from vendors.options import Options, SecretOptions, Text, matching

# Stores beside AWS leave the account out, or have one of their own.
RoleArn = Annotated[
    str,
    matching(
        r"arn:[a-z-]+:iam::[^:/\s]*:role/[^\s:]+",
        "must be the ARN of a role, such as arn:aws:iam::000000000000:role/NAME",
    ),
]


class AssumeRoleOptions(Options):
    """A role that the gateway itself works as."""

    arn: RoleArn
    external_id: Text | None = None
    session_name: Text = "sluice"


class _IdentityOptions(Options):
    assume_role: AssumeRoleOptions | None = None

    @property
    def is_role(self) -> bool:
        """Tell whether it is known to be a role's session itself, whose sessions AWS cuts at an hour."""
        return self.assume_role is not None

    @property
    def is_temporary(self) -> bool:
        """Tell whether it may work with sessions that end.

        What a profile or the SDK's chain holds is not known before it is asked for, and may be different
        tomorrow: both are taken for sessions. Keys without an end are then a session of any length.
        """
        return True


class KeysOptions(_IdentityOptions):
    kind: Literal["keys"]
    access_key_id: SecretOptions | Text
    secret_access_key: SecretOptions
    # Whoever gives one knows its end, and we do not: it is replaced by its file.
    session_token: SecretOptions | None = None

    @property
    def is_temporary(self) -> bool:
        return self.assume_role is not None


class ProfileOptions(_IdentityOptions):
    kind: Literal["profile"]
    name: Text
    # A shared credentials file in place of those in the home directory.
    file: Text | None = None


class WebIdentityOptions(_IdentityOptions):
    kind: Literal["webIdentity"]
    role_arn: RoleArn
    token_file: Text
    session_name: Text = "sluice"

    @property
    def is_role(self) -> bool:
        return True


class ChainOptions(_IdentityOptions):
    kind: Literal["chain"]


_PLACE: Final = r"[^/?#@\s]+"
_LOOPBACK: Final = r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?"
_BARE: Final = "a host and port without user, path and query"
# Answers of a token service hold secret keys: in the clear they stay on the machine.
Https = Annotated[
    str,
    matching(
        rf"https://{_PLACE}|http://{_LOOPBACK}",
        f"must begin with https:// (http:// is for this machine only), and be {_BARE}",
    ),
]
Url = Annotated[str, matching(rf"https?://{_PLACE}", f"must begin with https:// or http://, and be {_BARE}")]

AnyIdentity = KeysOptions | ProfileOptions | WebIdentityOptions | ChainOptions
AwsIdentity = Annotated[AnyIdentity, Field(discriminator="kind")]

# Where a file names no storages, and so no identity.
CHAIN: Final = ChainOptions(kind="chain")


def is_clear(url: str) -> bool:
    """Tell whether what is sent to an address can be read on its way."""
    return url.startswith("http://") and not re.fullmatch(rf"http://{_LOOPBACK}", url)
