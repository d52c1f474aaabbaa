"""Addresses of listeners and of gRPC services."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

_HOST: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?\.?")
_LARGEST_PORT: Final = 65535
_UNIX: Final = "unix:"
_DNS: Final = re.compile(r"dns:(?://[^/]*/)?")
_LITERAL: Final = re.compile(r"ipv[46]:")


@dataclass(frozen=True, slots=True)
class Address:
    """A host and port, or a unix socket."""

    host: str
    port: int
    # The socket's path; empty for TCP.
    socket: str = ""

    @property
    def is_private(self) -> bool:
        """Tell whether only this machine can reach it."""
        return bool(self.socket) or is_loopback(self.host)

    @property
    def ip_version(self) -> int | None:
        """Return 4 or 6, or None for a name or a socket."""
        try:
            return ipaddress.ip_address(self.host).version
        except ValueError:
            return None

    def __str__(self) -> str:
        if self.socket:
            return f"{_UNIX}{self.socket}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_host(text: str) -> bool:
    """Tell whether the text is a name or an IP address, the latter without brackets."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return _HOST.fullmatch(text) is not None and not text.replace(".", "").isdigit()
    return True


def parse_tcp(text: str) -> Address:
    """Parse ``host:port`` or ``[v6]:port``."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("must be host:port; an IPv6 address stands in brackets, as in [::1]:9400")
    if not colon or not is_host(host) or not _is_port(port):
        raise ValueError("must be host:port, such as 127.0.0.1:9400")
    return Address(host, int(port))


def parse_listener(text: str) -> Address:
    """Parse ``host:port``, or ``unix:/path`` of a socket."""
    if not text.startswith(_UNIX):
        return parse_tcp(text)
    path = text.removeprefix(_UNIX)
    path = path.removeprefix("//") if path.startswith("///") else path
    if not path.startswith("/") or path.startswith("//") or path.endswith("/"):
        raise ValueError("must name a socket by its whole path, as in unix:/run/sluice/catalog.sock")
    return Address("", 0, path)


def parse_target(text: str) -> Address:
    """Parse what a gRPC channel can be opened to, such as ``dns:///catalog:9400``."""
    if text.startswith(_UNIX):
        return parse_listener(text)
    return parse_tcp(_LITERAL.sub("", _DNS.sub("", text, count=1), count=1))


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len("65535") and int(text) <= _LARGEST_PORT
