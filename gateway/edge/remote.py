"""Where a request came from, as far as the proxies in between are trusted."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from gateway.edge.settings import Network


def client_address(peer: str | None, forwarded_for: Sequence[str], trusted: Sequence[Network]) -> str:
    """Return the nearest address that is not a trusted proxy's.

    ``forwarded_for`` holds the X-Forwarded-For headers in their order; each proxy appends the address
    that it was called from, so what a client made up stands to the left of what is believed.
    """
    address = peer or ""
    if not trusted:
        return address
    hops = [hop.strip() for value in forwarded_for for hop in value.split(",")]
    while hops and _is_trusted(address, trusted):
        hop = hops.pop()
        if _parse(hop) is None:
            break
        address = hop
    return address


def _is_trusted(address: str, trusted: Sequence[Network]) -> bool:
    parsed = _parse(address)
    return parsed is not None and any(parsed in network for network in trusted)


def _parse(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return None
    # A dual-stack listener sees IPv4 peers in this form.
    return getattr(parsed, "ipv4_mapped", None) or parsed
