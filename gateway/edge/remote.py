"""Where a request came from, as far as the proxies in between are trusted."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import Final

from gateway.edge.settings import Network

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Some proxies append the port to the address that they were called from: 192.0.2.1:4711, [2001:db8::1]:4711.
_WITH_PORT: Final = re.compile(
    r"\[(?P<bracketed>[0-9A-Fa-f:.]+)\](?::[0-9]{1,5})?|(?P<dotted>[0-9.]+):[0-9]{1,5}"
)


def client_address(peer: str | None, forwarded_for: Sequence[str], trusted: Sequence[Network]) -> str:
    """Return the nearest address that is not a trusted proxy's, in its one spelling.

    ``forwarded_for`` holds the X-Forwarded-For headers in their order; each proxy appends the address
    that it was called from, so what a client made up stands to the left of what is believed.
    A peer without an address, as on a unix socket, is trusted by nobody.
    """
    address = _parse(peer or "")
    if address is None:
        return peer or ""
    hops = [hop for value in forwarded_for for hop in value.split(",") if hop.strip()]
    while hops and _is_trusted(address, trusted):
        caller = _parse_hop(hops.pop().strip())
        if caller is None:
            break
        address = caller
    return str(address)


def _is_trusted(address: _Address, trusted: Sequence[Network]) -> bool:
    return any(address in network for network in trusted)


def _parse_hop(text: str) -> _Address | None:
    if match := _WITH_PORT.fullmatch(text):
        text = match["bracketed"] or match["dotted"]
    # A zone means something on the machine that knows it only, and may be any text.
    return None if "%" in text else _parse(text)


def _parse(text: str) -> _Address | None:
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        return None
    # A dual-stack listener sees IPv4 peers in this form.
    return getattr(parsed, "ipv4_mapped", None) or parsed
