"""A name server for one name, whose addresses a test can change: what a headless service is in Kubernetes."""

from __future__ import annotations

import ipaddress
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

_HEADER = struct.Struct("!HHHHHH")
_ANSWER_FLAGS = 0x8580
_ADDRESS_TYPE, _INTERNET = 1, 1
# The name of an answer is where the question has it.
_SAME_NAME = 0xC00C


class NameServer:
    """Answers every question for IPv4 addresses with the same ones, and all others with nothing."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self.addresses = tuple(addresses)
        self.questions = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def serve(self) -> None:
        with self._socket, suppress(OSError):
            while True:
                message, client = self._socket.recvfrom(4096)
                if message == b"":
                    return
                self._socket.sendto(self.answer(message), client)

    def answer(self, message: bytes) -> bytes:
        number, *_ = _HEADER.unpack_from(message)
        # The name ends with an empty label, then come two bytes of type and two of class.
        end = message.index(b"\0", _HEADER.size) + 5
        question = message[_HEADER.size : end]
        (kind,) = struct.unpack("!H", question[-4:-2])
        self.questions += kind == _ADDRESS_TYPE
        addresses = self.addresses if kind == _ADDRESS_TYPE else ()
        head = _HEADER.pack(number, _ANSWER_FLAGS, 1, len(addresses), 0, 0)
        return head + question + b"".join(map(_record, addresses))

    def close(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.sendto(b"", ("127.0.0.1", self.port))


@contextmanager
def running_names(addresses: Sequence[str]) -> Iterator[NameServer]:
    server = NameServer(addresses)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join(60)


def _record(address: str) -> bytes:
    data = ipaddress.IPv4Address(address).packed
    # Good for no time: who asks again is told anew.
    return struct.pack("!HHHIH", _SAME_NAME, _ADDRESS_TYPE, _INTERNET, 0, len(data)) + data
