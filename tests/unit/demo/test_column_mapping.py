from __future__ import annotations

import polars as pl

from gateway.demo.column_mapping import ID, PHYSICAL_NAME, map_columns, physical_name, to_physical
from gateway.demo.schema import Field, array_of, map_of, polars_type, struct_of
from tests.cases import each_case

MEMBER = struct_of(Field("x", "long"))


def ids_in(schema: object) -> list[int]:
    if isinstance(schema, dict):
        own = [schema["metadata"][ID]] if "metadata" in schema else []
        return own + [number for value in schema.values() for number in ids_in(value)]
    return [number for item in schema for number in ids_in(item)] if isinstance(schema, list) else []


def test_columns_and_members_have_ids_of_their_own():
    fields, last = map_columns([Field("a", "long"), Field("s", array_of(MEMBER)), Field("b", "long")], "t")

    assert sorted(ids_in([field.to_json() for field in fields])) == [1, 2, 3, 4]
    assert last == 4


def test_later_columns_go_on_counting():
    [field], last = map_columns([Field("c", "long")], "t", after=4)

    assert (field.metadata[ID], last) == (5, 5)


def test_names_are_those_of_the_table_and_the_id():
    [one], _ = map_columns([Field("a", "long")], "t")
    [same], _ = map_columns([Field("b", "long")], "t")
    [other], _ = map_columns([Field("a", "long")], "u")

    assert physical_name(one) == physical_name(same) != physical_name(other)
    assert physical_name(one).startswith("col-")


def test_a_column_without_mapping_has_its_own_name():
    frame = pl.DataFrame({"a": [1]})

    assert physical_name(Field("a", "long")) == "a"
    assert to_physical(frame, [Field("a", "long")]) is frame


@each_case(
    ("delta", "value", "expected"),
    [
        ("long", 1, 1),
        (MEMBER, {"x": 1}, {"PHYSICAL": 1}),
        (MEMBER, None, None),
        (array_of(MEMBER), [{"x": 1}, None], [{"PHYSICAL": 1}, None]),
        (map_of("string", MEMBER), {"k": {"x": 1}}, {"k": {"PHYSICAL": 1}}),
    ],
)
def test_values_get_the_names_of_the_file_at_every_depth(delta, value, expected):
    [field], _ = map_columns([Field("a", delta)], "t")
    frame = pl.DataFrame({"a": [value]}, schema={"a": polars_type(delta)})

    [row] = to_physical(frame, [field]).to_dicts()

    names = {name for name in _names(field.to_json()) if name != physical_name(field)}
    assert row == {physical_name(field): _named(expected, *names)}


def _names(schema: object) -> set[str]:
    if isinstance(schema, dict):
        own = {schema["metadata"][PHYSICAL_NAME]} if "metadata" in schema else set()
        return own.union(*map(_names, schema.values()))
    return set().union(*map(_names, schema)) if isinstance(schema, list) else set()


def _named(value: object, *names: str) -> object:
    if isinstance(value, dict):
        return {names[0] if key == "PHYSICAL" else key: _named(item, *names) for key, item in value.items()}
    return [_named(item, *names) for item in value] if isinstance(value, list) else value
