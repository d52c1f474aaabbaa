from __future__ import annotations

import socket
import struct

from deploy.engine.names import answer

KNOWN = {"presign": ["10.0.0.1", "10.0.0.2"]}


def query(name, kind=1):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def read(message):
    number, flags, _, count, *_ = struct.unpack_from("!6H", message)
    addresses = [socket.inet_ntoa(message[-16 * index - 4 :][:4]) for index in range(count)]
    return number, flags & 0xF, set(addresses)


def test_a_name_has_the_addresses_of_all_its_replicas():
    assert read(answer(query("Presign"), KNOWN)) == (7, 0, {"10.0.0.1", "10.0.0.2"})


def test_a_name_of_another_network_is_none():
    assert read(answer(query("redis"), KNOWN)) == (7, 3, set())


def test_a_name_without_addresses_of_a_kind_is_there_all_the_same():
    assert read(answer(query("presign", kind=28), KNOWN)) == (7, 0, set())
