from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.config.document import find_lines, parse_document
from gateway.config.faults import ConfigError
from gateway.config.value import Plain
from tests.cases import each_case


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_document(text)
    return str(caught.value)


def test_scalars_stay_text_and_plain_ones_are_known():
    document = parse_document("a: 007\nb: '007'\nc: no\nd: 2030-01-31\ne: x\nf: !!str 1\n")
    assert document == {"a": "007", "b": "007", "c": "no", "d": "2030-01-31", "e": "x", "f": "1"}
    assert isinstance(document, dict)
    assert [key for key, value in document.items() if isinstance(value, Plain)] == ["a", "d"]


@each_case("text", ["a:", "a: ~", "a: null", "a: Null"])
def test_a_value_may_be_nothing(text):
    assert parse_document(text) == {"a": None}


def test_an_empty_text_in_quotes_is_not_nothing():
    assert parse_document("a: ''") == {"a": ""}


@pytest.mark.parametrize("text", ["", "\n# nothing here\n", "---\n"])
def test_an_empty_document_is_nothing(text):
    assert parse_document(text) is None


def test_aliases_and_merges_are_followed():
    text = "a: &a {x: 1, y: 2}\nb: *a\nc:\n  <<: *a\n  y: 3\nd:\n  <<: [{x: 5}, *a]\n"
    one = {"x": "1", "y": "2"}
    assert parse_document(text) == {"a": one, "b": one, "c": {"x": "1", "y": "3"}, "d": {"x": "5", "y": "2"}}


def test_every_repeated_key_is_a_fault_with_its_place():
    with pytest.raises(ConfigError) as caught:
        parse_document("a: 1\nb:\n- x: 1\n- x: 1\n  x: 2\na: 3\n")
    assert [(fault.path, fault.line) for fault in caught.value.faults] == [("b[1].x", 5), ("a", 6)]


@each_case(
    ("text", "message"),
    [
        ("a: [", "not valid YAML: did not find expected"),
        ("a: b: c", "line 1: not valid YAML"),
        ("a: 'hunter2", "line 1: not valid YAML"),
        ("x: 1\na: *hunter2", "line 2: an alias (*) needs its anchor"),
        ("&a [*a]", "an alias (*) needs its anchor"),
        ("a: !hunter2 x", "a tag (!) has no meaning here"),
        ("a: !hunter2 {}", "a tag (!) has no meaning here"),
        ("[a]: b", "a key must be a text"),
        ("? {a: hunter2}\n: b", "a key must be a text"),
        ("<<: hunter2", "a merge (<<) takes a mapping"),
        ("a: 1\n---\nb: 2", "more than one YAML document"),
        ("a: \x00", "not valid YAML"),
        ("[" * 100, "nested more than 64 levels deep"),
        ('{"a": 1, "a": 2}', "line 1: a: the key 'a' is given twice"),
        ('{"a": "\\ud800"}', "not valid YAML"),
        ('{"a": 1,, "b": hunter2}', "line 1: not valid YAML"),
    ],
)
def test_what_is_no_document_is_refused_without_quoting_it(text, message):
    refused = refusal(text)
    assert message in refused
    assert "hunter2" not in refused


def test_json_is_read_as_yaml_is():
    document = parse_document('{"a": 1, "b": true, "c": [1.50, "x", null], "d": NaN}')
    assert document == {"a": "1", "b": True, "c": ["1.50", "x", None], "d": "NaN"}


def test_json_may_escape_pairs_of_surrogates():
    assert parse_document('{"a": "\\ud83d\\ude00"}') == {"a": "😀"}


def test_a_flow_mapping_need_not_be_json():
    assert parse_document("{a: 1, b: [x]}") == {"a": "1", "b": ["x"]}


def test_lines_are_those_of_the_entries():
    text = "a: 1\nb:\n- x\n- y: 2\n  z:\n    q: 3\n"
    assert find_lines(text) == {
        (): 1,
        ("a",): 1,
        ("b",): 2,
        ("b", 0): 3,
        ("b", 1): 4,
        ("b", 1, "y"): 4,
        ("b", 1, "z"): 5,
        ("b", 1, "z", "q"): 6,
    }


TEXT = st.text(st.characters(codec="utf-8"), max_size=10)
TREES = st.dictionaries(
    TEXT,
    st.recursive(
        TEXT,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
        max_leaves=5,
    ),
    max_size=4,
)


@given(TREES)
def test_json_round_trips(tree):
    assert parse_document(json.dumps(tree)) == tree


@given(st.text() | st.text("[]{}:,-&*!|>'\"%@`#? \n\tab<~", max_size=60))
@example("%YAML 9.9\n---\na")
@example("? ")
@example("\ud800")
def test_no_text_raises_anything_but_config_error(text):
    for parse in (parse_document, find_lines):
        with suppress(ConfigError):
            parse(text)
