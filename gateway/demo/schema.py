"""Columns of a Delta table: their JSON in the log, their types in a frame."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import polars as pl

# A primitive's name, or the JSON of an array, map or struct.
DeltaType: TypeAlias = str | Mapping[str, Any]

_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_PRIMITIVES: Final[Mapping[str, pl.DataType]] = {
    "byte": pl.Int8(),
    "short": pl.Int16(),
    "integer": pl.Int32(),
    "long": pl.Int64(),
    "float": pl.Float32(),
    "double": pl.Float64(),
    "boolean": pl.Boolean(),
    "string": pl.String(),
    "binary": pl.Binary(),
    "date": pl.Date(),
    "timestamp": pl.Datetime("us", "UTC"),
    "timestamp_ntz": pl.Datetime("us"),
}


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a member of a struct."""

    name: str
    type: DeltaType
    comment: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        metadata = {**({"comment": self.comment} if self.comment else {}), **self.metadata}
        return {"name": self.name, "type": self.type, "nullable": True, "metadata": metadata}


def array_of(element: DeltaType) -> DeltaType:
    return {"type": "array", "elementType": element, "containsNull": True}


def map_of(key: DeltaType, value: DeltaType) -> DeltaType:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def struct_of(*fields: Field) -> DeltaType:
    return {"type": "struct", "fields": [field.to_json() for field in fields]}


def schema_string(fields: Sequence[Field]) -> str:
    return json.dumps(struct_of(*fields), separators=(",", ":"), ensure_ascii=False)


def polars_schema(fields: Sequence[Field]) -> dict[str, pl.DataType]:
    return {field.name: polars_type(field.type) for field in fields}


def polars_type(delta_type: DeltaType) -> pl.DataType:
    if isinstance(delta_type, str):
        if match := _DECIMAL.fullmatch(delta_type):
            return pl.Decimal(int(match[1]), int(match[2]))
        return _PRIMITIVES[delta_type]
    if delta_type["type"] == "array":
        return pl.List(polars_type(delta_type["elementType"]))
    if delta_type["type"] == "map":
        return pl.Map(polars_type(delta_type["keyType"]), polars_type(delta_type["valueType"]))
    return pl.Struct({member["name"]: polars_type(member["type"]) for member in delta_type["fields"]})
