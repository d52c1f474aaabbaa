from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.services.snapshot.predicate.data_type import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
)
from gateway.services.snapshot.predicate.expression import (
    UNKNOWN,
    And,
    Column,
    Comparison,
    Constant,
    In,
    IsNull,
    Literal,
    Not,
    Operator,
    Or,
    ParseFault,
)
from gateway.services.snapshot.predicate.json_hint import parse_json
from tests.cases import each_case

INT = DataType("integer")
ID = {"op": "column", "name": "id", "valueType": "int"}
ONE = {"op": "literal", "value": "1", "valueType": "int"}
EQ = {"op": "equal", "children": [ID, ONE]}
COLUMN = Column(path=("id",), casts=(INT,))
COMPARISON = Comparison(operator=Operator.EQ, column=COLUMN, literal=Literal(text="1", type=INT))


def parse(tree):
    return parse_json(json.dumps(tree))


@each_case(
    ("op", "operator"),
    [
        ("equal", Operator.EQ),
        ("lessThan", Operator.LT),
        ("lessThanOrEqual", Operator.LE),
        ("greaterThan", Operator.GT),
        ("greaterThanOrEqual", Operator.GE),
    ],
)
def test_a_column_is_compared_with_a_literal(op, operator):
    found = parse({"op": op, "children": [ID, ONE]})

    assert found == Comparison(operator=operator, column=COLUMN, literal=Literal(text="1", type=INT))


def test_a_literal_on_the_left_turns_the_operator():
    found = parse({"op": "lessThan", "children": [ONE, ID]})

    assert found == Comparison(operator=Operator.GT, column=COLUMN, literal=Literal(text="1", type=INT))


@each_case(
    ("name", "data_type"),
    [
        ("bool", BOOLEAN),
        ("int", INT),
        ("long", LONG),
        ("string", STRING),
        ("date", DATE),
        ("float", FLOAT),
        ("double", DOUBLE),
        ("timestamp", TIMESTAMP),
    ],
)
def test_each_type_is_known(name, data_type):
    children = [
        {"op": "column", "name": "c", "valueType": name},
        {"op": "literal", "value": "x", "valueType": name},
    ]

    assert parse({"op": "equal", "children": children}) == Comparison(
        operator=Operator.EQ,
        column=Column(path=("c",), casts=(data_type,)),
        literal=Literal(text="x", type=data_type),
    )


@each_case(
    ("tree", "expression"),
    [
        ({"op": "isNull", "children": [ID]}, IsNull(column=COLUMN)),
        ({"op": "isNull", "children": [ONE]}, Constant(value=False)),
        ({"op": "not", "children": [EQ]}, Not(child=COMPARISON)),
        ({"op": "and", "children": [EQ, EQ, EQ]}, And(children=(COMPARISON,) * 3)),
        ({"op": "or", "children": [EQ, EQ]}, Or(children=(COMPARISON, COMPARISON))),
        ({"op": "in", "children": [ID, ONE]}, In(column=COLUMN, literals=(Literal(text="1", type=INT),))),
        ({"op": "literal", "value": True, "valueType": "bool"}, Constant(value=True)),
        (
            {"op": "column", "name": "b", "valueType": "bool"},
            Comparison(
                operator=Operator.EQ,
                column=Column(path=("b",), casts=(BOOLEAN,)),
                literal=Literal(text="true", type=BOOLEAN),
            ),
        ),
    ],
)
def test_other_operations_are_read(tree, expression):
    assert parse(tree) == expression


@each_case(
    "part",
    [
        {"op": "regexp", "children": [ID, ONE]},
        {"op": "equal", "children": [ID, ID]},
        {"op": "equal", "children": [ID, {"op": "literal", "value": "1", "valueType": "geometry"}]},
        {"op": "equal", "children": [ID, {"op": "literal", "value": None, "valueType": "int"}]},
        {"op": "equal", "children": [{"op": "column", "name": "id"}, ONE]},
        {"op": "equal", "children": [EQ, ONE]},
        {"op": "equal", "children": [ID, ONE], "exprCtx": {"collationIdentifier": "icu.UNICODE_CI.75.1"}},
        # Spark has no other word for a null.
        {"op": "isNull", "children": [{"op": "literal", "value": "null", "valueType": "string"}]},
        {"op": "equal", "children": [ID, {"op": "literal", "value": "null", "valueType": "int"}]},
    ],
)
def test_a_part_that_is_not_known_does_not_lose_the_others(part):
    assert parse({"op": "and", "children": [part, EQ]}) == And(children=(UNKNOWN, COMPARISON))


def test_texts_that_compare_by_their_bytes_are_no_collation():
    context = {"collationIdentifier": "spark.UTF8_BINARY"}

    assert parse({**EQ, "exprCtx": context}) == COMPARISON


@each_case(
    "text",
    [
        "",
        "nonsense",
        "[]",
        "1",
        "null",
        "{}",
        '{"op": 1}',
        '{"op": "and"}',
        '{"op": "and", "children": []}',
        '{"op": "and", "children": {}}',
        '{"op": "and", "children": [1, 2]}',
        '{"op": "not", "children": [{"op": "isNull", "children": []}]}',
        '{"op": "column", "valueType": "bool"}',
        json.dumps({"op": "equal", "children": [ID]}),
        json.dumps({"op": "not", "children": [EQ, EQ]}),
        json.dumps({"op": "isNull", "children": [ID, ID]}),
    ],
)
def test_what_is_not_a_predicate_is_a_fault(text):
    with pytest.raises(ParseFault):
        parse_json(text)


@each_case(
    "text",
    [
        '{"op":"not","children":[' * 101 + json.dumps(EQ) + "]}" * 101,
        '{"op":"not","children":[' * 9_000 + "]}" * 9_000,
        "[" * 100_000,
        json.dumps({"op": "and", "children": [EQ] * 600}),
        json.dumps({"op": "literal", "value": "x" * 300_000, "valueType": "string"}),
    ],
)
def test_depth_and_size_are_limited(text):
    with pytest.raises(ParseFault):
        parse_json(text)


_TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.fixed_dictionaries(
            {"op": st.sampled_from(["and", "or", "not", "equal", "isNull", "in", "column", "literal", "x"])},
            optional={
                "children": st.lists(inner, max_size=3),
                "name": inner,
                "value": inner,
                "valueType": st.sampled_from(["int", "string", "bool", "x"]) | inner,
                "exprCtx": inner,
            },
        )
    ),
    max_leaves=15,
)


@given(st.text() | _TREES.map(json.dumps))
def test_any_text_is_a_predicate_or_a_fault(text):
    with contextlib.suppress(ParseFault):
        parse_json(text)
