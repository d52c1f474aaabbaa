"""Answers containers which addresses a name has on their networks, as an engine's own name server does.

``python -m deploy.engine.names TABLE ADDRESS…``: TABLE has the names that each container's address is told.
"""

from __future__ import annotations

import json
import selectors
import socket
import struct
import sys
from pathlib import Path
from typing import Final

PORT: Final = 53
_HEADER: Final = struct.Struct("!6H")
_IPV4: Final = 1
_ANSWER: Final = 0x8580
_NO_SUCH_NAME: Final = 3
_POINTER_TO_QUESTION: Final = 0xC00C


def answer(query: bytes, known: dict[str, list[str]]) -> bytes:
    """Return the answer to one question; a name has addresses of IPv4 only."""
    number, *_ = _HEADER.unpack_from(query)
    labels, offset = [], _HEADER.size
    while length := query[offset]:
        labels.append(query[offset + 1 : offset + 1 + length].decode().lower())
        offset += length + 1
    question = query[_HEADER.size : offset + 5]
    (kind,) = struct.unpack_from("!H", query, offset + 1)
    addresses = known.get(".".join(labels))
    status = _ANSWER | (_NO_SUCH_NAME if addresses is None else 0)
    found = (addresses or []) if kind == _IPV4 else []
    records = b"".join(
        struct.pack("!HHHIH", _POINTER_TO_QUESTION, _IPV4, 1, 1, 4) + socket.inet_aton(address)
        for address in found
    )
    return _HEADER.pack(number, status, 1, len(found), 0, 0) + question + records


def serve(table: Path, addresses: list[str]) -> None:
    with selectors.DefaultSelector() as selector:
        for address in addresses:
            listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            listener.bind((address, PORT))
            selector.register(listener, selectors.EVENT_READ)
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        while True:
            for key, _ in selector.select():
                _serve_one(key.fileobj, table)


def _serve_one(listener: object, table: Path) -> None:
    assert isinstance(listener, socket.socket)  # noqa: S101 -- what was registered
    query, (asking, port) = listener.recvfrom(4096)
    # Read anew: containers come one after the other.
    known = json.loads(table.read_text()).get(asking, {})
    listener.sendto(answer(query, known), (asking, port))


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2:])
