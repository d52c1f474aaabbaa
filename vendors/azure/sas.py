"""What a SAS consists of and what its signature covers; SAS for directories and containers."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlencode

from vendors.azure.delegation_key import API_VERSION, DelegationKey, format_time

READ_AND_LIST: Final = "rl"

# What the signature covers in this version, line by line; what a SAS lacks is an empty line. Not the depth:
# by it Azure cuts the directory out of a request's own path, and signs that anew.
_BEFORE_RESOURCE: Final = ("sp", "st", "se")
_DELEGATED: Final = ("skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid")
# The account's own key is not told, and a policy that was stored with the container could be.
_OWN: Final = ("si",)
_AFTER_KEY: Final = ("sip", "spr", "sv", "sr", "snapshot", "ses", "rscc", "rscd", "rsce", "rscl", "rsct")


@dataclass(frozen=True, slots=True, kw_only=True)
class SasResource:
    """A directory by its literal name, or a container where the path is empty."""

    account: str
    container: str
    path: str = ""

    @property
    def canonical(self) -> str:
        name = f"/blob/{self.account}/{self.container}"
        return f"{name}/{self.path}" if self.path else name

    @property
    def depth(self) -> int:
        return self.path.count("/") + 1 if self.path else 0


def signed_around(fields: Mapping[str, str]) -> tuple[str, str]:
    """Return the text that is signed before the name of the resource, and the text after it."""
    key = _DELEGATED if "skoid" in fields else _OWN
    before = "".join(f"{fields.get(name, '')}\n" for name in _BEFORE_RESOURCE)
    return before, "".join(f"\n{fields.get(name, '')}" for name in (*key, *_AFTER_KEY))


def sign_sas(
    resource: SasResource,
    key: DelegationKey,
    *,
    starts_at: datetime,
    expires_at: datetime,
    protocol: str = "https",
    correlation_id: str = "",
) -> str:
    """Return the SAS, without a question mark; it reads and lists the resource and nothing else."""
    fields = {
        "sv": API_VERSION,
        "sr": "d" if resource.path else "c",
        "sp": READ_AND_LIST,
        "st": format_time(starts_at),
        "se": format_time(expires_at),
        "spr": protocol,
        **key.fields,
    }
    if correlation_id:
        fields["scid"] = correlation_id
    if resource.path:
        fields["sdd"] = str(resource.depth)
    fields["sig"] = _signature(fields, resource, key)
    return urlencode(fields, quote_via=quote, safe="")


def _signature(fields: Mapping[str, str], resource: SasResource, key: DelegationKey) -> str:
    text = resource.canonical.join(signed_around(fields))
    return base64.b64encode(hmac.digest(key.secret, text.encode(), "sha256")).decode()
