from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.commands.comparison.answer import TableAnswer
from gateway.commands.comparison.client import Refused, Unreachable
from gateway.commands.comparison.difference import (
    METADATA_FIELDS,
    SHARE_FIELDS,
    TABLE_FIELDS,
    Finding,
    Weight,
    compare_answers,
    compare_fields,
    compare_heads,
    compare_metadata,
    compare_names,
)
from gateway.commands.comparison.values import MISSING
from tests.cases import each_case

SCHEMA: dict[str, Any] = {
    "type": "struct",
    "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}],
}
METADATA = {
    "id": "m1",
    "format": {"provider": "parquet"},
    "schemaString": json.dumps(SCHEMA),
    "partitionColumns": [],
    "configuration": {"a": "1"},
}


def answer(**changes: object) -> TableAnswer:
    return TableAnswer(version=3, protocol={"minReaderVersion": 1}, metadata={**METADATA, **changes})


def of_metadata(old: TableAnswer, new: TableAnswer) -> list[tuple[str, object, object, str]]:
    return [(item.what, item.old, item.new, item.weight.value) for item in compare_metadata("t", old, new)]


def test_equal_metadata_has_no_findings():
    assert of_metadata(answer(), answer()) == []


def test_a_schema_is_compared_as_what_it_says():
    spaced = json.dumps(SCHEMA, indent=2)
    assert of_metadata(answer(), answer(schemaString=spaced)) == []


def test_a_column_of_another_type_is_named():
    other = {"type": "struct", "fields": [{**SCHEMA["fields"][0], "type": "integer"}]}
    (finding,) = of_metadata(answer(), answer(schemaString=json.dumps(other)))
    assert finding == ("metaData.schemaString.fields.id.type", "long", "integer", "difference")


def test_each_configuration_key_is_compared():
    assert of_metadata(answer(), answer(configuration={"a": "2", "b": "1"})) == [
        ("metaData.configuration.a", "1", "2", "difference"),
        ("metaData.configuration.b", MISSING, "1", "difference"),
    ]


def test_an_absent_configuration_equals_an_empty_one():
    assert of_metadata(answer(configuration={}), answer(configuration=None)) == []


@each_case(
    ("field", "value"),
    [("location", "s3://b/t"), ("accessModes", ["url"]), ("size", 5), ("numFiles", 0), ("version", 3)],
)
def test_what_only_the_new_server_offers_is_no_difference(field, value):
    assert of_metadata(answer(), answer(**{field: value})) == [
        (f"metaData.{field}", MISSING, value, "only in new")
    ]


def test_what_only_the_old_server_offers_is_a_difference():
    assert of_metadata(answer(size=5), answer()) == [("metaData.size", 5, MISSING, "difference")]


@pytest.mark.parametrize("field", ["name", "description", "partitionColumns"])
def test_a_field_that_the_new_server_makes_up_is_a_difference(field):
    assert [item[3] for item in of_metadata(answer(), answer(**{field: ["x"]}))] == ["difference"]


def test_unknown_fields_are_ignored():
    assert of_metadata(answer(), answer(invented="x")) == []


def test_protocol_versions_are_compared():
    new = TableAnswer(version=3, protocol={"minReaderVersion": 3}, metadata=METADATA)
    assert of_metadata(answer(), new) == [("protocol.minReaderVersion", 1, 3, "difference")]


def test_ids_of_shares_and_tables_are_compared_where_both_give_them():
    def weights(old, new, fields):
        return [item.weight for item in compare_fields("s", "", old, new, fields)]

    for fields in (SHARE_FIELDS, TABLE_FIELDS):
        assert weights({"id": "1"}, {"id": "2"}, fields) == [Weight.DIFFERENCE]
        assert weights({"id": "1"}, {}, fields) == [Weight.NOTE]
        assert weights({"id": ""}, {"id": "2"}, fields) == [Weight.ONLY_IN_NEW]


def test_a_value_that_reads_missing_is_not_taken_for_an_absent_one():
    (finding,) = compare_fields("s", "", {"comment": "missing"}, {}, SHARE_FIELDS)
    assert (finding.old, finding.new) == ("missing", MISSING)


def test_all_fields_of_metadata_are_compared():
    old = dict.fromkeys(METADATA_FIELDS, "a")
    new = dict.fromkeys(METADATA_FIELDS, "b")
    assert {item.what for item in compare_fields("t", "", old, new, METADATA_FIELDS)} == set(METADATA_FIELDS)


def test_names_on_one_side_are_differences_and_case_is_a_note():
    findings = list(compare_names("servers", "share", ["Sales", "hr"], ["sales", "it"]))
    assert [(item.weight.value, item.what, item.detail) for item in findings] == [
        ("difference", "share hr", "only in old"),
        ("difference", "share it", "only in new"),
        ("note", "share name", ""),
    ]


def test_two_answers_are_passed_on():
    assert compare_answers("t", "version", 1, 2) == ([], (1, 2))


def test_an_error_on_one_side_is_a_difference():
    findings, both = compare_answers("t", "query", 1, Refused(500, "INTERNAL_ERROR: oops"))
    assert both is None
    assert findings == [
        Finding(subject="t", what="query", detail="answered in old, 500 INTERNAL_ERROR: oops in new")
    ]


def test_the_same_error_on_both_sides_is_a_note():
    findings, _ = compare_answers("t", "query", Refused(400, "a"), Refused(400, "b"))
    assert findings[0].weight is Weight.NOTE


@pytest.mark.parametrize(
    ("old", "new"),
    [(Refused(400, ""), Refused(404, "")), (Refused(400, ""), Unreachable("cannot connect"))],
)
def test_different_errors_are_a_difference(old, new):
    findings, _ = compare_answers("t", "query", old, new)
    assert findings[0].weight is Weight.DIFFERENCE


def test_a_new_server_whose_query_begins_unlike_its_metadata_is_told_of():
    steady, moody = (answer(), answer()), (answer(), answer(name="x"))
    assert list(compare_heads("t", steady, steady)) == []
    assert list(compare_heads("t", moody, moody)) == []
    assert [item.what for item in compare_heads("t", steady, moody)] == ["query"]
