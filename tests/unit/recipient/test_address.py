from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sluice_recipient.address import TableName, parse_address, parse_name
from sluice_recipient.errors import ProfileError

from tests.cases import each_case

_PART = st.text(st.characters(exclude_characters="./#", exclude_categories=("Cc", "Cs")), min_size=1)


def test_an_address_is_a_file_and_a_name():
    assert parse_address("some/reader.share#sales.shop.orders") == (
        Path("some/reader.share"),
        TableName(share="sales", schema="shop", table="orders"),
    )


def test_a_path_may_have_a_hash_in_it():
    path, name = parse_address("c#/reader.share#sales.shop.orders")

    assert (path, str(name)) == (Path("c#/reader.share"), "sales.shop.orders")


def test_a_home_directory_is_found():
    assert parse_address("~/reader.share#a.b.c")[0] == Path.home() / "reader.share"


@each_case("address", ["", "reader.share", "#a.b.c", "reader.share#", "reader.share#a.b"])
def test_what_is_no_address_is_refused_with_the_form(address):
    with pytest.raises(ProfileError, match=r"SHARE\.SCHEMA\.TABLE"):
        parse_address(address)


def test_only_a_share_has_dots_in_its_name():
    name = parse_name("com.example.sales.shop.orders")

    assert name == TableName(share="com.example.sales", schema="shop", table="orders")


def test_each_part_is_quoted_in_the_path():
    assert TableName(share="a b", schema="c%", table="d?").path == "/shares/a%20b/schemas/c%25/tables/d%3F"


@given(_PART, _PART, _PART)
def test_every_name_survives_its_text(share, schema, table):
    name = TableName(share=share, schema=schema, table=table)

    assert parse_name(str(name)) == name
    assert name.path.count("/") == 6
