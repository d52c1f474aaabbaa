"""What is written for a view: the types of its columns, and nothing that it does not show."""

from __future__ import annotations

import json

import pytest

from tests.components import SPARK_PIPELINE
from tests.integration.pipeline.view_plans import ViewOnDisk
from tests.spark import create_delta

pytestmark = pytest.mark.component(SPARK_PIPELINE)

TYPES = (
    "a BYTE, b SHORT, c INT, d BIGINT, e FLOAT, f DOUBLE, g DECIMAL(38, 18), h STRING, i BINARY, j BOOLEAN, "
    "k DATE, l TIMESTAMP, m TIMESTAMP_NTZ, n STRUCT<x: INT, y: STRUCT<z: STRING>>, o ARRAY<STRUCT<x: INT>>, "
    "p MAP<STRING, ARRAY<INT>>, q VARIANT, r VARCHAR(9), s CHAR(3)"
)
VALUES = (
    "1, 2, 3, 4, 5.5, 6.5, 7.123456789012345678, 'h', X'00ff', true, DATE'1969-12-31', "
    "TIMESTAMP'1969-12-31 23:59:59.999999Z', TIMESTAMP_NTZ'2026-01-01 00:00:00.000001', "
    "named_struct('x', 1, 'y', named_struct('z', 'z')), array(named_struct('x', 1)), "
    "map('k', array(1, NULL)), parse_json('[1, null]'), 'varchar', 'c'"
)


def test_every_type_is_shown_as_it_is_partitioned_or_not(spark, tmp_path):
    columns = f"{TYPES}, t TIMESTAMP_NTZ"
    source = create_delta(spark, tmp_path / "source", columns, "PARTITIONED BY (c, k, t)")
    source.sql("INSERT INTO {table} SELECT " + VALUES + ", TIMESTAMP_NTZ'2026-03-29 02:30:00.5'")
    shown = ViewOnDisk(spark, tmp_path / "view", "SELECT * FROM source_0", source.path)
    shown.refresh()
    source.sql("INSERT INTO {table} SELECT " + VALUES + ", NULL")
    assert shown.refresh()["kind"] == "append"
    texts = "to_json(struct(*)) AS text"
    assert frame(spark, shown).selectExpr(texts).exceptAll(source.frame().selectExpr(texts)).count() == 0
    assert frame(spark, shown).count() == 2
    kinds = {field.name: field.dataType.simpleString() for field in frame(spark, shown).schema.fields}
    assert (kinds["m"], kinds["q"], kinds["r"], kinds["s"]) == (
        "timestamp_ntz",
        "variant",
        "string",
        "string",
    )


def test_nothing_of_the_source_goes_along_but_what_is_shown(spark, tmp_path):
    source = create_delta(
        spark,
        tmp_path / "hidden-place",
        "id INT NOT NULL COMMENT 'hidden-comment', salary INT, "
        "band INT GENERATED ALWAYS AS (salary - 4711), deep STRUCT<a: INT COMMENT 'hidden-comment'>",
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'hidden.property' = 'hidden-property')",
    )
    source.sql("ALTER TABLE {table} ADD CONSTRAINT hidden_rule CHECK (salary < 999999)")
    source.insert("(1, 123456, named_struct('a', 1))", "(id, salary, deep)")
    query = "SELECT id, band > 0 AS rich, deep FROM source_0 WHERE salary > 1000 AND 'x' <> :property_0"
    asked = {"property_0": "hidden-property-of-recipient"}
    shown = ViewOnDisk(spark, tmp_path / "view", query, source.path, parameters=asked)
    shown.refresh()
    source.insert("(2, 123457, named_struct('a', 1))", "(id, salary, deep)")
    assert shown.refresh()["kind"] == "append"
    held = b"".join(file.read_bytes() for file in shown.directory.rglob("*") if file.is_file())
    for hidden in (b"hidden", b"salary", b"4711", b"12345", b"source_0", b"generation", b"physicalName"):
        assert hidden not in held
    actions = [json.loads(line) for line in log_lines(shown)]
    (protocol,) = [action["protocol"] for action in actions if "protocol" in action]
    assert protocol == {"minReaderVersion": 1, "minWriterVersion": 2}
    assert not any("userMetadata" in action.get("commitInfo", {}) for action in actions)


def log_lines(shown):
    for file in sorted((shown.directory / "_delta_log").glob("*.json")):
        yield from file.read_text().splitlines()


def frame(spark, shown):
    return spark.read.format("delta").load(str(shown.directory))
