from __future__ import annotations

import uuid

import pytest

from gateway.demo.z85 import to_z85


def test_bytes_are_spelled_as_the_specification_of_z85_does():
    assert to_z85(bytes.fromhex("864fd26fb559f75b")) == "HelloWorld"


def test_a_name_is_spelled_as_the_delta_protocol_does():
    assert to_z85(uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61").bytes) == "^-aqEH.-t@S}K{vb[*k^"


@pytest.mark.parametrize("length", [1, 2, 3])
def test_what_is_no_whole_group_is_filled_up(length):
    assert to_z85(b"\x01" * length) == to_z85(b"\x01" * length + bytes(4 - length))
