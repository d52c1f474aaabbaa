from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.services.snapshot.predicate.data_type import find_type
from pipeline.index.columns import MOST, Family, typed_columns
from tests.cases import each_case


def metadata(*fields: dict[str, Any], partitions: tuple[str, ...] = (), mode: str = "none") -> dict[str, Any]:
    return {
        "schemaString": json.dumps({"type": "struct", "fields": list(fields)}),
        "partitionColumns": list(partitions),
        "configuration": {"delta.columnMapping.mode": mode},
    }


def field(name: str, kind: object, physical: str = "") -> dict[str, Any]:
    notes = {"delta.columnMapping.physicalName": physical} if physical else {}
    return {"name": name, "type": kind, "nullable": True, "metadata": notes}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


@each_case(
    ("kind", "family"),
    [
        ("byte", Family.INTEGER),
        ("long", Family.INTEGER),
        ("float", Family.NUMBER),
        ("decimal(10,2)", Family.NUMBER),
        ("string", Family.TEXT),
        ("timestamp_ntz", Family.LOCAL_TIMESTAMP),
    ],
)
def test_a_column_is_of_the_family_of_its_type(kind, family):
    [column] = typed_columns(metadata(field("a", kind)))
    assert (column.path, column.type, column.family, column.partition) == (("a",), kind, family, False)


@each_case("kind", ["binary", "variant", {"type": "array", "elementType": "long"}, {"type": "map"}])
def test_what_is_not_compared_gets_no_bounds(kind):
    assert typed_columns(metadata(field("a", kind))) == ()


def test_members_of_structs_are_columns_by_their_paths():
    inner = field("x", struct(field("y", "long"), field("z", {"type": "array"})))
    [column] = typed_columns(metadata(field("a", struct(inner))))
    assert column.path == ("a", "x", "y")


def test_partition_columns_come_first_whatever_their_case():
    columns = typed_columns(metadata(field("a", "long"), field("Day", "date"), partitions=("day",)))
    assert [(column.path, column.partition) for column in columns] == [(("Day",), True), (("a",), False)]


def test_a_member_of_a_struct_is_no_partition_though_it_has_the_name_of_one():
    columns = typed_columns(metadata(field("a", struct(field("day", "date"))), partitions=("day",)))
    assert [column.partition for column in columns] == [False]


@pytest.mark.parametrize(("mode", "name"), [("name", "col-1"), ("id", "col-1"), ("none", "a")])
def test_a_column_is_known_by_the_name_that_files_have_for_it(mode, name):
    [column] = typed_columns(metadata(field("a", "long", physical="col-1"), mode=mode))
    assert column.path == (name,)


def test_only_so_many_columns_are_typed():
    fields = [field(f"c{number}", "long") for number in range(2 * MOST)]
    assert len(typed_columns(metadata(*fields))) == MOST


@each_case(
    "kind",
    [
        *("byte", "short", "integer", "long", "float", "double", "decimal(10,2)", "decimal(38, 0)"),
        *("string", "boolean", "date", "timestamp", "timestamp_ntz", "binary", "variant", "void", "interval"),
    ],
)
def test_bounds_are_of_the_types_that_predicates_compare_and_of_the_same_families(kind):
    columns = typed_columns(metadata(field("a", kind)))
    compared = find_type(kind)

    assert [column.family.name for column in columns] == ([compared.family.name] if compared else [])
