from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.state_key import check_state_prefix, is_state_key


@given(st.text())
def test_key_never_leads_anywhere_else(text):
    if is_state_key(text):
        words = text.split("/")
        assert all(words)
        assert not {".", ".."} & set(words)
        assert text.isascii()
        assert not text.startswith("/")


@given(st.from_regex(r"\A[a-z0-9]{1,20}(/[a-z0-9=_.-]{0,10}[a-z0-9]){0,4}\Z"))
def test_words_joined_by_slashes_are_a_key_and_make_a_prefix(text):
    assert is_state_key(text)
    assert check_state_prefix(f"{text}/") == f"{text}/"
