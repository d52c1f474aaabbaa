from __future__ import annotations

from binascii import hexlify
from datetime import timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.adapters.cache.codec import Packed
from gateway.adapters.cache.url_codec import pack, unpack
from gateway.ports import Signatures
from tests.cases import each_case
from tests.unit.adapters.cache.doubles import NOON

TEXT = st.text(max_size=20)
HEX = st.tuples(st.integers(1, 40), st.integers(1, 9)).flatmap(
    lambda shape: st.binary(min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]).map(
        lambda raw: hexlify(raw, b"\n", shape[0])
    )
)
LINES = st.lists(st.text("abcdefABCDEF0123456789%+/=-_", max_size=12), max_size=8)
JOINED = st.one_of(HEX, LINES.map(lambda lines: "\n".join(lines).encode()), st.binary(max_size=60))
MOMENTS = st.integers(min_value=0, max_value=10**12).map(lambda n: NOON + timedelta(microseconds=n))
SIGNATURES = st.builds(Signatures, origin=TEXT, query=TEXT, signatures=JOINED, expires_at=MOMENTS)


def signatures(joined: bytes) -> Signatures:
    return Signatures(origin="https://h/", query="q&sig=", signatures=joined, expires_at=NOON)


@given(SIGNATURES, st.lists(st.binary(max_size=16), max_size=2).map(tuple))
def test_what_is_packed_is_unpacked(value, epochs):
    packed = Packed(value, epochs)
    assert unpack(pack(packed)) == packed


@pytest.mark.parametrize("width", [32, 256], ids=["SigV4", "RSA"])
def test_hexadecimal_signatures_take_half_the_room(width):
    joined = hexlify(bytes(range(256)) * 4 * width, b"\n", width)
    assert len(pack(Packed(signatures(joined), ()))) < len(joined) / 2 + 150


@each_case(
    "joined",
    [b"AB\nCD", b"ab\ncdef", b"ab\n\ncd", b"\nab", b"abc\nabc", b"ab\n", b"a b\nc d", b"", b"\n", b"zz"],
)
def test_what_is_not_plain_hexadecimal_comes_back_as_it_was(joined):
    unpacked = unpack(pack(Packed(signatures(joined), ())))
    assert unpacked is not None
    assert unpacked.value.signatures == joined


def test_a_moment_of_another_zone_is_the_same_moment():
    east = NOON.astimezone(timezone(timedelta(hours=9)))
    value = Signatures(origin="", query="", signatures=b"ab", expires_at=east)
    unpacked = unpack(pack(Packed(value, ())))
    assert unpacked is not None
    assert unpacked.value.expires_at == NOON


@given(st.binary())
def test_garbage_is_none(data):
    assert unpack(data) is None


@given(st.integers(min_value=0, max_value=200))
def test_what_was_cut_off_is_none_or_has_fewer_signatures(end):
    data = pack(Packed(signatures(b"ab" * 32 + b"\n" + b"cd" * 32), (b"e",)))
    unpacked = unpack(data[:end])
    assert unpacked is None or len(unpacked.value.signatures) < 129 or end >= len(data)
