"""Column mapping: names that the files and the log have for columns, whatever the schema calls them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Final

import polars as pl

from gateway.demo.schema import DeltaType, Field, polars_schema

MODE: Final = "delta.columnMapping.mode"
MAX_ID: Final = "delta.columnMapping.maxColumnId"
ID: Final = "delta.columnMapping.id"
PHYSICAL_NAME: Final = "delta.columnMapping.physicalName"

_NAMESPACE: Final = uuid.UUID("b3f1d0a2-8d3c-4a0e-a1a4-2f8f5a3a7e55")


def map_columns(fields: Sequence[Field], table: str, after: int = 0) -> tuple[list[Field], int]:
    """Give columns, and members of structs, ids above the last one and names of their own.

    Returned are the columns and the id that is the last one now.
    """
    ids = count(after + 1)
    mapped = [_mapped(field, table, ids) for field in fields]
    return mapped, next(ids) - 1


def physical_name(field: Field) -> str:
    return str(field.metadata.get(PHYSICAL_NAME, field.name))


def to_physical(frame: pl.DataFrame, fields: Sequence[Field]) -> pl.DataFrame:
    """Return a frame with the names, inside structs too, that a data file has for its columns."""
    if not any(PHYSICAL_NAME in field.metadata for field in fields):
        return frame
    known = [field for field in fields if field.name in frame.columns]
    rows = [
        {physical_name(field): _physical_value(row[field.name], field.type) for field in known}
        for row in frame.iter_rows(named=True)
    ]
    return pl.DataFrame(rows, schema=polars_schema([_physical_field(field) for field in known]))


def _mapped(field: Field, table: str, ids: Iterator[int]) -> Field:
    column = next(ids)
    mapping = {ID: column, PHYSICAL_NAME: f"col-{uuid.uuid5(_NAMESPACE, f'{table}/{column}')}"}
    return replace(field, type=_mapped_type(field.type, table, ids), metadata={**field.metadata, **mapping})


def _mapped_type(delta_type: DeltaType, table: str, ids: Iterator[int]) -> DeltaType:
    if isinstance(delta_type, str):
        return delta_type
    if delta_type["type"] == "struct":
        members = (_mapped(_member(member), table, ids) for member in delta_type["fields"])
        return {**delta_type, "fields": [member.to_json() for member in members]}
    return {
        key: _mapped_type(value, table, ids) if key in _INNER_TYPES else value
        for key, value in delta_type.items()
    }


_INNER_TYPES: Final = frozenset({"elementType", "keyType", "valueType"})


def _member(json: Mapping[str, Any]) -> Field:
    return Field(json["name"], json["type"], metadata=json["metadata"])


def _physical_field(field: Field) -> Field:
    return Field(physical_name(field), _physical_type(field.type))


def _physical_type(delta_type: DeltaType) -> DeltaType:
    if isinstance(delta_type, str):
        return delta_type
    if delta_type["type"] == "struct":
        members = (_physical_field(_member(member)) for member in delta_type["fields"])
        return {**delta_type, "fields": [member.to_json() for member in members]}
    return {key: _physical_type(value) if key in _INNER_TYPES else value for key, value in delta_type.items()}


def _physical_value(value: Any, delta_type: DeltaType) -> Any:
    if value is None or isinstance(delta_type, str):
        return value
    if delta_type["type"] == "struct":
        members = map(_member, delta_type["fields"])
        return {physical_name(each): _physical_value(value[each.name], each.type) for each in members}
    if delta_type["type"] == "array":
        return [_physical_value(item, delta_type["elementType"]) for item in value]
    return {key: _physical_value(item, delta_type["valueType"]) for key, item in value.items()}
