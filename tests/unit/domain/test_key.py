from __future__ import annotations

import hashlib
import hmac

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.key import Key, Keys

CURRENT = Key(id="new", secret=b"n" * 32)
PREVIOUS = Key(id="old", secret=b"o" * 32)


@given(secret=st.binary(min_size=1, max_size=200), head=st.binary(), tails=st.lists(st.binary(), max_size=4))
def test_macs_of_many_messages_are_the_hmacs_of_each(secret, head, tails):
    key = Key(id="k", secret=secret)

    expected = [hmac.new(secret, head + tail, hashlib.sha256).digest() for tail in tails]

    assert key.macs(head, tails) == expected
    assert [key.mac(head + tail) for tail in tails] == expected


def test_secret_is_not_printed():
    assert "nnnn" not in repr(Keys(current=CURRENT, previous=PREVIOUS))


def test_current_and_previous_key_are_found_by_id_and_no_other():
    keys = Keys(current=CURRENT, previous=PREVIOUS)

    assert keys.find("new") is CURRENT
    assert keys.find("old") is PREVIOUS
    assert keys.find("older") is None
    assert Keys(current=CURRENT).find("old") is None
