from __future__ import annotations

import pytest

from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.predicate.data_type import DATE, FLOAT, LONG, STRING, DataType
from gateway.services.snapshot.predicate.table_schema import Field, TableSchema
from tests.cases import each_case
from tests.unit.services.snapshot.predicate.tables import column, metadata_with, struct

PHYSICAL = "delta.columnMapping.physicalName"


def schema_of(*fields, partitions=(), **configuration):
    return TableSchema(metadata_with(*fields, partitions=partitions, **configuration))


def field(*path, type=LONG, partition=False, comparable=True):  # noqa: A002
    return Field(path=path, type=type, partition=partition, comparable=comparable)


def test_a_column_is_found_whatever_its_case():
    schema = schema_of(column("Id", "long"), column("Day", "date"), partitions=("Day",))

    assert schema.find(("iD",)) == field("Id")
    assert schema.find(("DAY",)) == field("Day", type=DATE, partition=True)
    assert schema.find(("none",)) is None


def test_a_nested_column_is_found_by_its_parts():
    inner = struct(column("B", struct(column("c", "long"))))
    schema = schema_of(column("a", inner), column("c.d", "long"))

    assert schema.find(("a", "b", "c")) == field("a", "B", "c")
    # As JSON predicates have it.
    assert schema.find(("a.b.c",)) == field("a", "B", "c")
    assert schema.find(("c.d",)) == field("c.d")
    assert schema.find(("c", "d")) is None
    assert schema.find(("a", "b")) is None


def test_columns_inside_of_arrays_and_maps_are_none():
    element = {"type": "array", "elementType": struct(column("b", "long")), "containsNull": True}
    schema = schema_of(column("a", element))

    assert schema.find(("a",)) is None
    assert schema.find(("a", "element", "b")) is None


def test_spark_puts_a_word_before_partition_columns():
    schema = schema_of(column("p", "long"), column("c", "long"), partitions=("p",))

    assert schema.find(("partitionValues", "p")) == field("p", partition=True)
    assert schema.find(("partitionValues", "c")) is None


def test_a_column_by_that_word_makes_it_ambiguous():
    inner = struct(column("p", "long"))
    schema = schema_of(column("partitionValues", inner), column("p", "long"), partitions=("p",))

    assert schema.find(("partitionValues", "p")) is None


def test_the_name_of_a_table_may_stand_before_a_column():
    schema = schema_of(column("c", "long"))

    assert schema.find(("spark_catalog", "default", "t", "c")) == field("c")


def test_names_that_may_mean_two_columns_mean_none():
    schema = schema_of(column("b", struct(column("c", "long"))), column("c", "long"))

    assert schema.find(("b", "c")) == field("b", "c")
    assert schema.find(("t", "b", "c")) is None
    assert schema_of(column("c", "long"), column("C", "long")).find(("c",)) is None


def test_nested_names_that_differ_by_case_alone_mean_none():
    inner = struct(column("b", "long"), column("B", "long"), column("c", "long"))
    schema = schema_of(column("A", inner))

    assert schema.find(("a", "b")) is None
    assert [schema.find(path) for path in (("a", "c"), ("A", "C"))] == [field("A", "c")] * 2


def test_three_columns_of_a_name_are_no_less_ambiguous_than_two():
    assert schema_of(*(column(name, "long") for name in ("ab", "aB", "AB"))).find(("ab",)) is None


def test_a_wide_table_costs_no_more_for_each_name():
    columns = [column(f"c{index}", "long") for index in range(20_000)]
    schema = schema_of(*columns, column("s", struct(*columns)))

    # Looking at each column for each part of each name would be many minutes.
    for index in range(200):
        assert schema.find((*["t"] * 50, f"C{index}")) == field(f"c{index}")
        assert schema.find((*["t"] * 50, "none")) is None
        assert schema.find(("s", f"C{index}")) == field("s", f"c{index}")


@pytest.mark.parametrize("mode", ["name", "id"])
def test_a_mapped_column_is_known_to_files_by_its_physical_name(mode):
    inner = struct(column("b", "long", **{PHYSICAL: "col-2"}))
    schema = schema_of(column("a", inner, **{PHYSICAL: "col-1"}), **{"delta.columnMapping.mode": mode})

    assert schema.find(("a", "b")) == field("col-1", "col-2")
    assert schema.find(("col-1", "col-2")) is None


def test_physical_names_mean_nothing_without_mapping():
    assert schema_of(column("a", "long", **{PHYSICAL: "col-1"})).find(("a",)) == field("a")


@each_case("kind", ["binary", "variant", "void", "interval day", "string collate UTF8_LCASE"])
def test_of_a_type_that_is_not_compared_only_nulls_are_known(kind):
    found = schema_of(column("a", kind)).find(("a",))

    assert found == field("a", type=STRING, comparable=False)


@pytest.mark.parametrize(
    ("notes", "comparable"),
    [
        ({"__COLLATIONS": {"a": "icu.UNICODE_CI"}}, False),
        ({"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}, False),
        ({"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"}, True),
    ],
)
def test_texts_that_do_not_compare_by_their_bytes_are_not_compared(notes, comparable):
    found = schema_of(column("a", "string", **notes)).find(("a",))

    assert found == field("a", type=STRING, comparable=comparable)


def test_a_double_that_was_a_float_is_bounded_as_one():
    changes = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}

    assert schema_of(column("a", "double", **changes)).find(("a",)) == field("a", type=FLOAT)


def test_decimals_have_a_precision_and_a_scale():
    found = schema_of(column("a", "decimal(12, 3)")).find(("a",))

    assert found == field("a", type=DataType("decimal", 12, 3))


@each_case(
    "text", ["", "x", "[]", "{}", '{"fields":5}', '{"fields":[5,{"name":1},{"name":"a"}]}', "[" * 9999]
)
def test_a_damaged_schema_has_no_columns(text):
    assert TableSchema(Metadata(id="t", schema_string=text)).find(("a",)) is None


@pytest.mark.parametrize("data_type", ["map", "array"])
def test_what_is_taken_from_a_map_or_an_array_is_no_column_by_that_name(data_type):
    kinds = {
        "map": {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
        "array": {"type": "array", "elementType": struct(column("key", "long")), "containsNull": True},
    }
    schema = schema_of(column("m", kinds[data_type]), column("key", "long"))

    assert schema.find(("m", "key")) is None
    assert schema.find(("alias", "key")) == field("key")


def test_a_name_that_may_be_one_of_two_columns_is_no_alias():
    schema = schema_of(column("a", "long"), column("A", "long"), column("b", "long"))

    assert schema.find(("a", "b")) is None


def test_a_column_whose_name_is_in_no_text_is_none():
    schema = schema_of(column("\ud800", "long"))

    assert schema.find(("\ud800",)) is None
