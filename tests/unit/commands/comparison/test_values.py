from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.commands.comparison.values import MISSING, differences, parse_json
from tests.cases import each_case

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(max_size=3), part, max_size=4),
    max_leaves=10,
)


def found(old: object, new: object) -> list[tuple[str, object, object]]:
    return list(differences(old, new, "x"))


@given(VALUES)
def test_a_value_does_not_differ_from_itself(value):
    assert found(value, json.loads(json.dumps(value))) == []


@given(VALUES, VALUES)
def test_differences_are_found_from_both_sides_alike(one, other):
    swapped = [(path, new, old) for path, old, new in found(other, one)]
    assert sorted(found(one, other), key=repr) == sorted(swapped, key=repr) or "order" in repr(swapped)


def test_a_nested_difference_is_named_by_its_path():
    assert found({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}) == [("x.a.b", [1, 2], [1, 3])]


@each_case(("old", "new"), [(1, True), (0, False), (1, "1"), ("a", "A"), ([1], [1, 2]), ({}, "")])
def test_values_of_another_kind_differ(old, new):
    assert found(old, new) == [("x", old, new)]


@each_case(("old", "new"), [("1", "1.0"), ("1e2", "100"), ("0.10", "0.1"), ("[1.0]", "[1]")])
def test_numbers_are_compared_as_numbers(old, new):
    assert found(parse_json(old), parse_json(new)) == []


def test_decimals_are_compared_exactly():
    assert found(parse_json("0.1"), parse_json("0.10000000000000000001"))


@pytest.mark.parametrize("nothing", [None, {}, []])
def test_an_absent_field_equals_an_empty_one(nothing):
    assert found({"a": 1}, {"a": 1, "metadata": nothing}) == []


def test_an_absent_field_differs_from_an_empty_string():
    assert found({}, {"a": ""}) == [("x.a", MISSING, "")]


def test_named_objects_are_matched_by_name():
    old = [{"name": "id", "type": "long"}, {"name": "at", "type": "date"}]
    new = [{"name": "id", "type": "integer"}, {"name": "by", "type": "string"}]
    assert found(old, new) == [
        ("x.id.type", "long", "integer"),
        ("x.at", {"name": "at", "type": "date"}, MISSING),
        ("x.by", MISSING, {"name": "by", "type": "string"}),
    ]


def test_another_order_of_named_objects_is_one_difference():
    old, new = [{"name": "a"}, {"name": "b"}], [{"name": "b"}, {"name": "a"}]
    assert found(old, new) == [("x order", ["a", "b"], ["b", "a"])]


def test_text_that_is_not_json_stays_text():
    assert parse_json("{") == "{"
    assert parse_json("NaN") == "NaN"
