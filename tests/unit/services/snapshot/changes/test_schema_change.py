from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Unsupported
from gateway.services.snapshot.changes.schema_change import find_break
from gateway.services.snapshot.log.metadata import Metadata
from tests.cases import each_case


def column(name: str, kind: Any = "long", *, nullable: bool = True, physical: str | None = None):
    known = {"delta.columnMapping.physicalName": physical} if physical else {}
    return {"name": name, "type": kind, "nullable": nullable, "metadata": known}


def struct(*fields):
    return {"type": "struct", "fields": list(fields)}


def array(kind: Any, *, nulls: bool = True):
    return {"type": "array", "elementType": kind, "containsNull": nulls}


def table_of(*fields, mode: str = "none", partition_columns: tuple[str, ...] = ()) -> Metadata:
    return Metadata(
        id="t",
        schema_string=json.dumps(struct(*fields)),
        configuration={"delta.columnMapping.mode": mode},
        partition_columns=partition_columns,
    )


@each_case(
    ("old", "new"),
    [
        pytest.param([column("a")], [column("a")], id="the same"),
        pytest.param([column("a")], [column("a"), column("b")], id="a column was added"),
        pytest.param([column("a")], [column("b"), column("a")], id="a column was put first"),
        pytest.param([column("a")], [column("A")], id="another case"),
        pytest.param([column("a", nullable=False)], [column("a")], id="nulls were allowed"),
        pytest.param(
            [column("s", struct(column("x")))],
            [column("s", struct(column("x"), column("y")))],
            id="a nested column was added",
        ),
        pytest.param(
            [column("l", array(struct(column("x"))))],
            [column("l", array(struct(column("x"), column("y"))))],
            id="a column was added to the elements of a list",
        ),
    ],
)
def test_what_only_adds_breaks_nothing(old, new):
    assert find_break(table_of(*old), table_of(*new)) is None


@each_case(
    ("old", "new", "reason"),
    [
        ([column("a"), column("b")], [column("a")], "column 'b' was dropped or renamed"),
        ([column("a", "integer")], [column("a", "long")], "the type of column 'a' changed"),
        ([column("a")], [column("a", nullable=False)], "column 'a' no longer takes nulls"),
        (
            [column("s", struct(column("x")))],
            [column("s", struct(column("y")))],
            "column 's.x' was dropped or renamed",
        ),
        (
            [column("l", array("long"))],
            [column("l", array("long", nulls=False))],
            "'l' no longer takes nulls",
        ),
        ([column("l", array("integer"))], [column("l", array("long"))], "the type of column 'l' changed"),
        (
            [column("m", {"type": "map", "keyType": "string", "valueType": "integer"})],
            [column("m", {"type": "map", "keyType": "string", "valueType": "long"})],
            "the type of column 'm' changed",
        ),
        ([column("s", struct())], [column("s", "string")], "the type of column 's' changed"),
    ],
)
def test_what_takes_away_or_changes_is_told(old, new, reason):
    assert reason in str(find_break(table_of(*old), table_of(*new)))


def test_a_renamed_column_is_found_by_its_physical_name():
    old = table_of(column("a", physical="col-1"), mode="name")
    new = table_of(column("b", physical="col-1"), column("a", physical="col-2"), mode="name")

    assert find_break(old, new) == "column 'a' was dropped or renamed"


def test_a_column_that_was_dropped_and_added_again_is_another_one():
    old = table_of(column("a", physical="col-1"), mode="id")
    new = table_of(column("a", physical="col-2"), mode="id")

    assert find_break(old, new) == "column 'a' was dropped or renamed"


def test_turning_the_mapping_of_columns_on_breaks_nothing():
    old = table_of(column("Ab"))
    new = table_of(column("Ab", physical="Ab"), column("c", physical="col-2"), mode="name")

    assert find_break(old, new) is None


def test_taking_the_mapping_of_columns_away_breaks():
    old, new = table_of(column("a", physical="a"), mode="name"), table_of(column("a"))

    assert find_break(old, new) == "the mapping of its columns was taken away"


def test_other_partition_columns_break():
    old = table_of(column("a"))

    assert find_break(old, table_of(column("a"), partition_columns=("a",))) == "its partition columns changed"


@given(st.text())
def test_a_schema_that_is_none_is_a_damage(text):
    broken = Metadata(id="t", schema_string=text)
    try:
        told = find_break(broken, table_of(column("a")))
    except Unsupported as exc:
        told = str(exc)
    # A text may be JSON, and then it is another type.
    assert told is not None
    assert "damaged" in told or "the type of column" in told


_TYPES = st.recursive(
    st.sampled_from(["long", "string", "decimal(10,2)"]),
    lambda kinds: (
        st.builds(array, kinds, nulls=st.booleans())
        | st.dictionaries(st.sampled_from("xyz"), kinds, max_size=3).map(
            lambda fields: struct(*(column(name, kind) for name, kind in fields.items()))
        )
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from("abcd"), _TYPES), _TYPES)
def test_a_schema_can_be_read_by_itself_and_by_one_with_a_column_more(fields, more):
    old = [column(name, kind) for name, kind in fields.items()]

    assert find_break(table_of(*old), table_of(*old)) is None
    assert find_break(table_of(*old), table_of(*old, column("new", more))) is None
    assert find_break(table_of(*old, column("new", more)), table_of(*old)) is not None
