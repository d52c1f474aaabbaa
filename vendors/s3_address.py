"""Where a bucket is: one address for whoever reads it, lists it or signs its URLs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from gateway.domain.file_path import encode_path

_LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_SHORTEST: Final = 3
_SUFFIXES: Final = (
    ("cn-", "amazonaws.com.cn"),
    ("eusc-", "amazonaws.eu"),
    ("us-iso-", "c2s.ic.gov"),
    ("us-isob-", "sc2s.sgov.gov"),
    ("us-isof-", "csp.hci.ic.gov"),
    ("eu-isoe-", "cloud.adc-e.uk"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A bucket on the network, and the region that requests to it are signed for."""

    # Scheme and host as ``as_sent`` has them; its name has the bucket unless the path does.
    url: str
    # Empty where the host's name has it.
    bucket_in_path: str = ""
    region: str

    @property
    def host(self) -> str:
        return self.url.partition("://")[2]

    def directory(self, path: str) -> str:
        """Return the directory of a key in a URL's spelling, between slashes."""
        parts = [part for part in (self.bucket_in_path, encode_path(path)) if part]
        return "".join(f"/{part}" for part in parts) + "/"


def aws_url(region: str, *, dual_stack: bool = False) -> str:
    """Return where AWS has the buckets of a region."""
    return f"https://s3.{_regional(region, dual_stack=dual_stack)}"


def access_point_url(arn: str, region: str, endpoint: str = "", *, dual_stack: bool = False) -> str:
    """Return where an access point is, which has a host of its own."""
    _, _, _, _, account, resource = arn.split(":")
    base = endpoint or f"https://s3-accesspoint.{_regional(region, dual_stack=dual_stack)}"
    return with_label(base, f"{resource.removeprefix('accesspoint/')}-{account}")


def with_label(url: str, label: str) -> str:
    """Return the address with something in front of its host's name."""
    scheme, separator, host = url.partition("://")
    return f"{scheme}{separator}{label}.{host}"


def fits_host(bucket: str, url: str = "https://") -> bool:
    """Tell whether a bucket's name can stand in front of the host's, as the SDK sees it."""
    parts = urlsplit(url)
    if len(bucket) < _SHORTEST or _is_number(bucket) or _is_number(parts.hostname or ""):
        return False
    # No certificate matches a name with more labels than it was made for.
    labels = [bucket] if parts.scheme == "https" else bucket.split(".")
    return all(_LABEL.fullmatch(label) for label in labels)


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _regional(region: str, *, dual_stack: bool) -> str:
    suffix = next((suffix for start, suffix in _SUFFIXES if region.startswith(start)), "amazonaws.com")
    return f"dualstack.{region}.{suffix}" if dual_stack else f"{region}.{suffix}"
