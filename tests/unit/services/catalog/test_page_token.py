from __future__ import annotations

import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.key import Key, Keys
from gateway.domain.name import MAX_LENGTH, fold
from gateway.errors import InvalidArgument
from gateway.services.catalog.operation import Operation
from gateway.services.catalog.page_token import PageTokens

FIRST = Key(id="first", secret=b"1" * 32)
SECOND = Key(id="second", secret=b"2" * 32)
TOKENS = PageTokens(Keys(current=FIRST))
LIST = Operation("ListTables", "share", "schema")
ALPHABET = string.ascii_letters + string.digits + "-_"

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
operations = st.builds(Operation, st.sampled_from(["ListShares", "ListTables"]), texts, texts)
keys = st.lists(texts, min_size=1, max_size=2).map(tuple)


@settings(deadline=None)
@given(operations, keys)
def test_a_token_opens_to_what_it_was_made_of(operation, after):
    token = TOKENS.encode(operation, after)
    assert TOKENS.decode(operation, token) == after
    assert re.fullmatch(r"[A-Za-z0-9_-]+", token)


@settings(deadline=None)
@given(keys, st.integers(0), st.integers(1, 127))
def test_a_token_with_a_changed_byte_is_refused(after, position, change):
    token = bytearray(TOKENS.encode(LIST, after).encode())
    token[position % len(token)] ^= change
    with pytest.raises(InvalidArgument):
        TOKENS.decode(LIST, token.decode())


@settings(deadline=None)
@given(keys, st.integers(0), st.sampled_from(ALPHABET))
def test_a_token_with_another_character_of_its_alphabet_is_refused(after, position, character):
    token = TOKENS.encode(LIST, after)
    position %= len(token)
    changed = token[:position] + character + token[position + 1 :]
    if changed != token:
        with pytest.raises(InvalidArgument):
            TOKENS.decode(LIST, changed)


@pytest.mark.parametrize("after", [("a",), ("ab",), ("abc",)])
def test_the_spare_bits_of_the_last_character_are_not_free(after):
    token = TOKENS.encode(LIST, after)
    others = [token[:-1] + character for character in ALPHABET if character != token[-1]]
    for other in others:
        with pytest.raises(InvalidArgument):
            TOKENS.decode(LIST, other)


@settings(deadline=None)
@given(st.text())
def test_any_other_text_is_refused(text):
    with pytest.raises(InvalidArgument):
        TOKENS.decode(LIST, text)


@settings(deadline=None)
@given(keys, st.integers(1))
def test_a_token_that_is_cut_or_grown_is_refused(after, length):
    token = TOKENS.encode(LIST, after)
    for changed in (token[: length % len(token)], token + "A" * (length % 9 + 1), f"{token}=", f" {token}"):
        with pytest.raises(InvalidArgument):
            TOKENS.decode(LIST, changed)


@settings(deadline=None)
@given(operations, operations, keys)
def test_a_token_of_one_list_is_refused_for_another(one, other, after):
    def identity(operation: Operation) -> tuple[str, ...]:
        return operation.method, fold(operation.share), fold(operation.schema)

    token = TOKENS.encode(one, after)
    if identity(one) == identity(other):
        assert TOKENS.decode(other, token) == after
    else:
        with pytest.raises(InvalidArgument, match="does not belong to this list; leave it out to start"):
            TOKENS.decode(other, token)


def test_names_that_run_together_do_not_make_the_same_list():
    token = TOKENS.encode(Operation("ListTables", "ab", "c"), ("t",))
    with pytest.raises(InvalidArgument):
        TOKENS.decode(Operation("ListTables", "a", "bc"), token)


def test_a_list_is_the_same_in_any_case():
    token = TOKENS.encode(Operation("ListTables", "Share", "SCHEMA"), ("t",))
    assert TOKENS.decode(LIST, token) == ("t",)


def test_a_name_that_cannot_be_encoded_is_refused_like_any_other():
    with pytest.raises(InvalidArgument):
        TOKENS.decode(Operation("ListTables", "\ud800"), TOKENS.encode(LIST, ("t",)))


def test_a_token_survives_a_restart_and_one_turn_of_the_keys():
    token = TOKENS.encode(LIST, ("t",))
    assert PageTokens(Keys(current=Key(id="first", secret=b"1" * 32))).decode(LIST, token) == ("t",)
    assert PageTokens(Keys(current=SECOND, previous=FIRST)).decode(LIST, token) == ("t",)
    with pytest.raises(InvalidArgument):
        PageTokens(Keys(current=SECOND)).decode(LIST, token)


def test_a_token_is_made_with_the_current_key():
    token = PageTokens(Keys(current=SECOND, previous=FIRST)).encode(LIST, ("t",))
    assert PageTokens(Keys(current=SECOND)).decode(LIST, token) == ("t",)


def test_another_secret_under_the_same_key_id_is_refused():
    with pytest.raises(InvalidArgument):
        PageTokens(Keys(current=Key(id="first", secret=b"x" * 32))).decode(LIST, TOKENS.encode(LIST, ("t",)))


# As long as folding and UTF-8 can make a character.
@pytest.mark.parametrize(("character", "most"), [("a", 800), ("\u0390", 4200), ("\U0001f600", 3000)])
def test_tokens_of_the_longest_names_fit_into_a_url(character, most):
    after = (fold(character * MAX_LENGTH),) * 2
    token = TOKENS.encode(Operation("ListAllTables", character * MAX_LENGTH), after)
    assert TOKENS.decode(Operation("ListAllTables", character * MAX_LENGTH), token) == after
    assert len(token) <= most
