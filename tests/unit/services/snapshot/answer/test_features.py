from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.demo.schema import Field, array_of, map_of, schema_string, struct_of
from gateway.errors import Unsupported
from gateway.services.snapshot.answer.features import (
    has_vectors,
    told_protocol,
    unknown_features,
    used_features,
)
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.protocol import Protocol
from tests.cases import each_case
from tests.unit.services.snapshot.answer.pages import files_of

_PLAIN = schema_string([Field("a", "long", comment="timestamp_ntz, variant and delta.typeChanges")])
_WIDENED = json.dumps(
    {"type": "struct", "fields": [{"name": "a", "type": "long", "metadata": {"delta.typeChanges": []}}]}
)
_VECTOR = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}


def protocol(*features: str, reader: int = 3) -> Protocol:
    return Protocol(
        min_reader_version=reader,
        min_writer_version=7,
        reader_features=features,
        writer_features=("rowTracking", *features),
    )


def metadata(schema: str = _PLAIN, **configuration: str) -> Metadata:
    properties = {key.replace("_", "."): value for key, value in configuration.items()}
    return Metadata(id="t", schema_string=schema, configuration=properties)


@each_case(
    ("listed", "table"),
    [
        (protocol(reader=1), metadata()),
        (protocol(reader=2), metadata()),
        (protocol(reader=2), metadata(delta_columnMapping_mode="none")),
        (protocol(), metadata()),
        (
            protocol("deletionVectors", "columnMapping", "timestampNtz", "typeWidening", "variantType"),
            metadata(),
        ),
        (protocol("variantShredding-preview", "typeWidening-preview"), metadata()),
        (protocol("DELETIONVECTORS"), metadata(delta_enableDeletionVectors="false")),
        (protocol("v2Checkpoint", "vacuumProtocolCheck"), metadata(delta_checkpointPolicy="v2")),
    ],
)
def test_a_feature_that_is_only_listed_is_not_in_use(listed, table):
    assert used_features(listed, table, has_vectors=False) == ()


@each_case(
    ("listed", "table", "feature"),
    [
        (protocol("deletionVectors"), metadata(delta_enableDeletionVectors="true"), "deletionVectors"),
        (protocol("columnMapping"), metadata(delta_columnMapping_mode="name"), "columnMapping"),
        (protocol(reader=2), metadata(delta_columnMapping_mode="id"), "columnMapping"),
        (protocol("timestampNtz"), metadata(schema_string([Field("a", "timestamp_ntz")])), "timestampNtz"),
        (
            protocol("timestampNtz"),
            metadata(schema_string([Field("a", array_of("timestamp_ntz"))])),
            "timestampNtz",
        ),
        (
            protocol("timestampNtz"),
            metadata(schema_string([Field("a", struct_of(Field("b", map_of("string", "timestamp_ntz"))))])),
            "timestampNtz",
        ),
        (protocol("variantType"), metadata(schema_string([Field("a", "variant")])), "variantType"),
        (
            protocol("variantShredding-preview"),
            metadata(schema_string([Field("a", "variant")])),
            "variantShredding-preview",
        ),
        (protocol("typeWidening"), metadata(_WIDENED), "typeWidening"),
        (protocol("typeWidening-preview"), metadata(_WIDENED), "typeWidening-preview"),
        (protocol("catalogManaged"), metadata(), "catalogManaged"),
        (protocol("somethingNew"), metadata(), "somethingNew"),
    ],
)
def test_a_feature_that_the_table_shows_or_nobody_knows_is_in_use(listed, table, feature):
    assert used_features(listed, table, has_vectors=False) == (feature,)


@pytest.mark.parametrize("listed", [protocol("deletionVectors"), protocol(reader=1)])
def test_a_file_with_a_deletion_vector_uses_them_whatever_the_table_says(listed):
    assert used_features(listed, metadata(), has_vectors=True) == ("deletionVectors",)


def test_only_live_files_have_deletion_vectors():
    rows: list[dict[str, Any]] = [{"path": "a", "deletionVector": _VECTOR}, {"path": "b"}]

    assert has_vectors(files_of(*rows))
    assert has_vectors(files_of(*rows, live=[True, False]))
    assert not has_vectors(files_of(*rows, live=[False, True]))
    assert not has_vectors(files_of({"path": "a"}))
    assert not has_vectors(files_of())


def test_what_a_catalog_manages_and_what_is_new_is_unknown():
    listed = protocol("deletionVectors", "catalogManaged", "catalogOwned-preview", "somethingNew", "")

    assert unknown_features(listed) == ("catalogManaged", "catalogOwned-preview", "somethingNew", "")


@pytest.mark.parametrize("schema", ["{", "[" * 100_000])
def test_a_schema_that_is_not_json_is_damage(schema):
    with pytest.raises(Unsupported, match="its schema is not JSON"):
        used_features(protocol("timestampNtz"), metadata(schema), has_vectors=False)


def test_features_that_nothing_needs_and_nobody_declares_are_not_told():
    listed = protocol("deletionVectors", "timestampNtz", "vacuumProtocolCheck")

    told = told_protocol(listed, metadata(), (), has_vectors=True)

    assert told.reader_features == ("deletionVectors",)
    # A reader takes a list for damaged in which such a feature stands once.
    assert told.writer_features == ("rowTracking", "deletionVectors")
    assert (told.min_reader_version, told.min_writer_version) == (3, 7)


def test_features_that_the_client_declares_are_told_as_they_are():
    listed = protocol("deletionVectors", "timestampNtz")

    assert told_protocol(listed, metadata(), {"timestampntz", "deletionvectors"}, has_vectors=False) == listed


@each_case(
    ("listed", "table"),
    [
        (protocol("typeWidening"), metadata(delta_enableTypeWidening="true")),
        (protocol("variantShredding"), metadata(delta_enableVariantShredding="true")),
        (protocol("v2Checkpoint"), metadata(delta_checkpointPolicy="v2")),
        (protocol("columnMapping"), metadata(delta_columnMapping_mode="name")),
    ],
)
def test_features_that_the_metadata_calls_for_are_told_because_readers_compare_the_two(listed, table):
    assert told_protocol(listed, table, (), has_vectors=False) == listed


def test_a_protocol_without_a_list_stays_without_one():
    plain = Protocol(min_reader_version=1, min_writer_version=2)

    assert told_protocol(plain, metadata(), (), has_vectors=False) == plain


def test_a_feature_that_is_listed_many_times_is_told_once_as_it_is_spelled_first():
    listed = protocol("timestampNtz", *["TimestampNTZ", "timestampntz"] * 1000, "foo")
    table = metadata('{"type":"struct","fields":[{"name":"t","type":"timestamp_ntz"}]}')

    assert used_features(listed, table, has_vectors=False) == ("timestampNtz", "foo")
