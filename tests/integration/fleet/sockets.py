"""Which connections a process has, as the kernel tells."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Set
from contextlib import suppress
from pathlib import Path
from typing import Final

_ESTABLISHED: Final = "01"


def ports_towards(pid: int, address: str) -> Set[int]:
    """Return the own ports of a process' connections to an IPv4 address and port."""
    host, _, port = address.rpartition(":")
    # As the kernel writes it, also at the end of the IPv6 address that stands for it.
    remote = f"{socket.inet_aton(host)[::-1].hex()}:{int(port):04x}".upper()
    sockets = set(_sockets(pid))
    return {
        int(local.rpartition(":")[2], 16)
        for local, far, state, number in _connections(pid)
        if far.endswith(remote) and state == _ESTABLISHED and number in sockets
    }


def _sockets(pid: int) -> Iterator[str]:
    for link in Path(f"/proc/{pid}/fd").iterdir():
        # One that was closed meanwhile.
        with suppress(FileNotFoundError):
            kind, _, number = str(link.readlink()).partition(":")
            if kind == "socket":
                yield number.strip("[]")


def _connections(pid: int) -> Iterator[tuple[str, str, str, str]]:
    for table in ("tcp", "tcp6"):
        file = Path(f"/proc/{pid}/net/{table}")
        for line in file.read_text().splitlines()[1:] if file.exists() else ():
            fields = line.split()
            yield fields[1], fields[2], fields[3], fields[9]
