"""The storage account and the container that a location names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from gateway.domain.location import Location
from vendors.http import is_loopback

# ``account.dfs.core.windows.net``, its like in other clouds, and the accounts with a DNS zone of their own.
_HOST: Final = re.compile(r"(?P<account>[a-z0-9]{3,24})(\.z\d{1,3})?\.dfs\.[a-z0-9.-]+")
# It decodes escapes in a path before it checks a SAS, so that a name can stand for another one.
_ONELAKE: Final = ".fabric.microsoft.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    name: str
    container: str
    # Of the blob service, without a slash at its end.
    endpoint: str

    @property
    def protocol(self) -> str:
        """Return what a SAS may be used over: plain HTTP for a double on this machine and nothing else."""
        parts = urlsplit(self.endpoint)
        return "https,http" if parts.scheme == "http" and is_loopback(parts.hostname) else "https"

    def url(self, key: str = "") -> str:
        """Return the address of the container, or of a blob by its literal name."""
        container = f"{self.endpoint}/{quote(self.container, safe='$')}"
        return f"{container}/{quote(key, safe='/')}" if key else container


def read_account(location: Location, blob_endpoint: str | None = None) -> Account:
    """Return the account of a location; ``host_fault`` tells whether its host is one that we know."""
    container, _, host = location.authority.partition("@")
    # A location is folded to the dfs host of its account; keys and blobs are asked for at the blob host.
    default = f"https://{host.replace('.dfs.', '.blob.', 1)}"
    return Account(
        name=host.partition(".")[0],
        container=container,
        endpoint=blob_endpoint or default,
    )


def host_fault(location: Location) -> str | None:
    """Return why no SAS can be made for this host, in words."""
    host = location.authority.partition("@")[2]
    if host.endswith(_ONELAKE):
        return (
            "OneLake decodes a name before it checks a signature, which then opens more than it was made for"
        )
    if _HOST.fullmatch(host) is None:
        return (
            f"the host {host!r} does not name a storage account: spell the location "
            "abfss://container@account.dfs.core.windows.net/path, or with your cloud's domain"
        )
    return None
