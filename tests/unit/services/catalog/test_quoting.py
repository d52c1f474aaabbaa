from __future__ import annotations

from urllib.parse import quote

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.services.catalog.quoting import clipped, quoted
from tests.cases import each_case


def test_a_name_stands_in_quotes_as_it_was_written():
    assert quoted("Sales.Täble") == "'Sales.Täble'"


def test_unprintable_characters_are_escaped():
    assert quoted("a\nb\x1b[31m\u2028") == r"'a\nb\x1b[31m\u2028'"


def test_three_names_of_the_greatest_length_are_shown_in_full():
    name = ".".join(["n" * 255] * 3)
    assert quoted(name) == f"'{name}'"


@each_case("character", ["a", "é", "\U0001f600", "\0", "\ud800"])
def test_whatever_is_written_fits_into_the_trailing_metadata_of_a_status(character):
    assert len(quote(quoted(character * 100_000))) < 8 * 1024


@settings(deadline=None)
@given(st.text(max_size=100))
def test_a_short_name_is_not_cut(name):
    assert clipped(name) == name


def test_a_long_name_is_cut_between_characters():
    assert clipped("😀" * 300) == "😀" * 256 + "…"
