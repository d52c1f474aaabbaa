from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.name import (
    MAX_LENGTH,
    TableName,
    check_schema_name,
    check_share_name,
    check_table_name,
    fold,
)
from gateway.errors import InvalidArgument
from tests.cases import each_case
from tests.problems import assert_none, not_raised

CHECKS = [check_share_name, check_schema_name, check_table_name]
FORBIDDEN = [*(chr(code) for code in range(0x21)), "/", "\x7f"]

every_kind = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
# What the protocol allows in the name of a table, which is the strictest.
legal_names = st.text(
    st.characters(min_codepoint=0x21, exclude_characters="/.\x7f", exclude_categories=["Cs"]),
    min_size=1,
    max_size=MAX_LENGTH,
)


@every_kind
@settings(deadline=None)
@given(name=legal_names)
def test_a_legal_name_is_returned_as_it_is(check, name):
    assert check(name) == name


@every_kind
def test_a_forbidden_character_is_refused_and_named(check):
    outcomes = [
        not_raised(InvalidArgument, repr(character), check, f"a{character}b") for character in FORBIDDEN
    ]
    assert_none(filter(None, outcomes))


@every_kind
def test_255_characters_are_a_name_and_256_are_not(check):
    assert check("é" * 255) == "é" * 255
    with pytest.raises(InvalidArgument, match="at most 255 characters, this one has 256"):
        check("é" * 256)


@every_kind
def test_an_empty_name_is_refused(check):
    with pytest.raises(InvalidArgument, match="must not be empty"):
        check("")


@every_kind
def test_a_lone_surrogate_is_refused(check):
    with pytest.raises(InvalidArgument, match="lone surrogate"):
        check("a\ud800b")


def test_only_a_share_name_may_contain_a_period():
    assert check_share_name("a.b") == "a.b"
    for check in (check_schema_name, check_table_name):
        with pytest.raises(InvalidArgument, match=re.escape("'.'")):
            check("a.b")


@pytest.mark.parametrize("name", [".", ".."])
def test_a_share_name_that_no_url_can_carry_is_refused(name):
    with pytest.raises(InvalidArgument, match="no URL can carry it"):
        check_share_name(name)


@each_case(
    ("one", "other"),
    [("Sales", "sALES"), ("ÄRZTE", "ärzte"), ("ΟΔΟΣ", "οδος"), ("ΟΔΟΣ", "οδοσ"), ("STRASSE", "straße")],
)
def test_names_that_differ_only_in_case_fold_to_the_same(one, other):
    assert fold(one) == fold(other)


def test_different_names_fold_to_different_keys():
    assert len({fold(name) for name in ("a", "á", "ä", "a1", "a_1", "a-1")}) == 6


@settings(deadline=None)
@given(st.text())
def test_folding_twice_is_folding_once(name):
    assert fold(fold(name)) == fold(name)


@settings(deadline=None)
@given(st.text(st.characters(max_codepoint=0x7E)))
def test_upper_and_lower_case_of_an_ascii_name_fold_to_the_same(name):
    assert fold(name.upper()) == fold(name.lower()) == fold(name)


def test_a_table_name_keeps_its_case_and_compares_by_key():
    name = TableName("Share", "Schema", "Table")
    assert str(name) == "Share.Schema.Table"
    assert name.key == TableName("sHARE", "sCHEMA", "tABLE").key == ("share", "schema", "table")
