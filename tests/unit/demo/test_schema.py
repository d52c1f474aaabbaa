from __future__ import annotations

import json

import polars as pl

from gateway.demo.schema import Field, array_of, map_of, polars_schema, polars_type, schema_string, struct_of
from tests.cases import each_case


def test_a_schema_is_the_json_of_a_struct():
    text = schema_string([Field("größe", "long", "in mm"), Field("tags", array_of("string"))])

    assert json.loads(text) == {
        "type": "struct",
        "fields": [
            {"name": "größe", "type": "long", "nullable": True, "metadata": {"comment": "in mm"}},
            {
                "name": "tags",
                "type": {"type": "array", "elementType": "string", "containsNull": True},
                "nullable": True,
                "metadata": {},
            },
        ],
    }


@each_case(
    ("delta", "expected"),
    [
        ("byte", pl.Int8()),
        ("timestamp", pl.Datetime("us", "UTC")),
        ("decimal(38,18)", pl.Decimal(38, 18)),
        (array_of("integer"), pl.List(pl.Int32)),
        (map_of("string", "long"), pl.Map(pl.String, pl.Int64)),
        (struct_of(Field("a", array_of("date"))), pl.Struct({"a": pl.List(pl.Date)})),
    ],
)
def test_every_type_has_its_column(delta, expected):
    assert polars_type(delta) == expected


def test_columns_keep_their_order():
    assert list(polars_schema([Field("b", "long"), Field("a", "string")])) == ["b", "a"]
