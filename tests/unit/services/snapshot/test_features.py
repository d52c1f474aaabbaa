from __future__ import annotations

import json

import polars as pl
import pytest

from gateway.demo.schema import Field, array_of, map_of, schema_string, struct_of
from gateway.errors import Unsupported
from gateway.ports import LogFile
from gateway.services.snapshot.features import require_parquet
from gateway.services.snapshot.log.actions import FILES
from gateway.services.snapshot.state.snapshot import Metadata, Protocol, Snapshot
from tests.builders import STARTED_AT

_PLAIN = schema_string([Field("a", "long", comment="timestamp_ntz, variant and delta.typeChanges")])


def snapshot(
    *features: str,
    reader: int = 3,
    schema: str = _PLAIN,
    provider: str = "parquet",
    deletion_vector: bool = False,
    **configuration: str,
):
    row = {
        "path": "a",
        "encoded": "a",
        "partitionValues": {},
        "size": 1,
        "hasDeletionVector": deletion_vector,
    }
    return Snapshot(
        version=0,
        protocol=Protocol(min_reader_version=reader, reader_features=features),
        metadata=Metadata(
            id="t",
            schema_string=schema,
            provider=provider,
            configuration={key.replace("_", "."): value for key, value in configuration.items()},
        ),
        files=pl.DataFrame([row], schema=FILES),
        size=1,
        anchor=LogFile("anchor", 1, STARTED_AT),
    )


@pytest.mark.parametrize(
    "table",
    [
        snapshot(reader=1),
        snapshot(reader=2),
        snapshot(reader=2, delta_columnMapping_mode="none"),
        snapshot(),
        snapshot("deletionVectors", "columnMapping", "timestampNtz", "typeWidening", "variantType"),
        snapshot("DELETIONVECTORS", delta_enableDeletionVectors="false"),
        snapshot("v2Checkpoint", "vacuumProtocolCheck"),
    ],
)
def test_a_table_that_uses_no_reader_feature_is_served(table):
    require_parquet(table, "s.s.t")


@pytest.mark.parametrize(
    ("table", "feature"),
    [
        (snapshot("deletionVectors", delta_enableDeletionVectors="true"), "deletionVectors"),
        (snapshot("deletionVectors", deletion_vector=True), "deletionVectors"),
        (snapshot(reader=1, deletion_vector=True), "deletionVectors"),
        (snapshot("columnMapping", delta_columnMapping_mode="name"), "columnMapping"),
        (snapshot(reader=2, delta_columnMapping_mode="id"), "columnMapping"),
        (snapshot("timestampNtz", schema=schema_string([Field("a", "timestamp_ntz")])), "timestampNtz"),
        (
            snapshot("timestampNtz", schema=schema_string([Field("a", array_of("timestamp_ntz"))])),
            "timestampNtz",
        ),
        (
            snapshot(
                "timestampNtz",
                schema=schema_string([Field("a", struct_of(Field("b", map_of("string", "timestamp_ntz"))))]),
            ),
            "timestampNtz",
        ),
        (snapshot("variantType", schema=schema_string([Field("a", "variant")])), "variantType"),
        (
            snapshot(
                "typeWidening",
                schema=json.dumps(
                    {
                        "type": "struct",
                        "fields": [{"name": "a", "type": "long", "metadata": {"delta.typeChanges": []}}],
                    }
                ),
            ),
            "typeWidening",
        ),
        (snapshot("catalogManaged"), "catalogManaged"),
        (snapshot("somethingNew"), "somethingNew"),
    ],
)
def test_a_table_that_uses_a_reader_feature_needs_the_delta_format(table, feature):
    with pytest.raises(Unsupported, match="Unsupported Delta Table Properties") as caught:
        require_parquet(table, "share.schema.table")

    assert f"share.schema.table uses {feature}," in caught.value.message
    assert "responseformat=delta" in caught.value.message
    assert caught.value.error_code == "UNSUPPORTED_OPERATION"


def test_all_features_in_the_way_are_named():
    table = snapshot("new", "columnMapping", deletion_vector=True, delta_columnMapping_mode="name")

    with pytest.raises(Unsupported, match="uses new, columnMapping, deletionVectors,"):
        require_parquet(table, "s.s.t")


def test_a_reader_version_from_the_future_is_refused():
    with pytest.raises(Unsupported, match="a reader of version 4"):
        require_parquet(snapshot(reader=4), "s.s.t")


def test_another_file_format_is_refused():
    with pytest.raises(Unsupported, match="a format other than parquet"):
        require_parquet(snapshot(provider="orc"), "s.s.t")


@pytest.mark.parametrize("schema", ["{", "[" * 100_000])
def test_a_schema_that_is_not_json_is_damage(schema):
    with pytest.raises(Unsupported, match="its schema is not JSON"):
        require_parquet(snapshot("timestampNtz", schema=schema), "s.s.t")
