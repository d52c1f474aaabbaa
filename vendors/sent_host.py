"""The host of a store as clients send it, and so as it is signed."""

from __future__ import annotations

from typing import Final

_STANDARD_PORTS: Final = {"http": 80, "https": 443}


def as_sent(url: str) -> str:
    """Return an address as clients send its host, which is signed: in small letters, without a usual port.

    Some leave the port out and some send what the URL has: the URL itself must not have it.
    """
    scheme, separator, host = url.lower().partition("://")
    return f"{scheme}{separator}{host.removesuffix(f':{_STANDARD_PORTS[scheme]}')}"
