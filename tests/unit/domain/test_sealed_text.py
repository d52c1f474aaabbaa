from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.key import Key, Keys
from gateway.domain.sealed_text import pack, seal, unpack, unseal

KEY = Key(id="first", secret=b"1" * 32)
OTHER = Key(id="second", secret=b"2" * 32)
KEYS = Keys(current=KEY)
LONG = 4096


@given(st.binary(max_size=200), st.binary(max_size=50))
def test_a_sealed_text_opens_to_its_body_and_needs_no_encoding(body: bytes, purpose: bytes) -> None:
    text = seal(KEY, purpose, body)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", text)
    assert unseal(KEYS, purpose, text, LONG) == body


@given(st.binary(max_size=60), st.integers(0), st.integers(0, 5))
def test_a_text_with_any_bit_flipped_is_refused(body: bytes, position: int, bit: int) -> None:
    text = bytearray(seal(KEY, b"p", body).encode())
    text[position % len(text)] ^= 1 << bit
    with pytest.raises(ValueError):  # noqa: PT011 -- each way of being wrong has words of its own
        unseal(KEYS, b"p", text.decode(), LONG)


@given(st.binary(max_size=20), st.binary(max_size=20), st.binary(max_size=20))
def test_a_text_of_another_purpose_is_refused(body: bytes, purpose: bytes, other: bytes) -> None:
    text = seal(KEY, purpose, body)
    if purpose != other:
        with pytest.raises(ValueError, match="not sealed by us"):
            unseal(KEYS, other, text, LONG)


def test_what_moves_from_the_purpose_into_the_body_is_another_text() -> None:
    assert seal(KEY, b"ab", b"c")[-8:] != seal(KEY, b"a", b"bc")[-8:]
    with pytest.raises(ValueError, match="not sealed by us"):
        unseal(KEYS, b"a", seal(KEY, b"ab", b"c"), LONG)


def test_a_previous_key_is_believed_and_a_forgotten_one_is_not() -> None:
    text = seal(OTHER, b"p", b"body")
    assert unseal(Keys(current=KEY, previous=OTHER), b"p", text, LONG) == b"body"
    with pytest.raises(ValueError, match="not sealed by us"):
        unseal(KEYS, b"p", text, LONG)


def test_a_text_longer_than_any_is_not_even_decoded() -> None:
    text = seal(KEY, b"p", b"body")
    with pytest.raises(ValueError, match="longer"):
        unseal(KEYS, b"p", text, len(text) - 1)


@given(st.text())
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- each way of being wrong has words of its own
        unseal(KEYS, b"p", text, LONG)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_what_was_packed_is_unpacked(parts: list[str]) -> None:
    assert unpack(pack(*parts)) == tuple(parts)


def test_what_is_cut_short_is_not_unpacked() -> None:
    with pytest.raises(ValueError, match="cut short"):
        unpack(pack("abc")[:-1])
