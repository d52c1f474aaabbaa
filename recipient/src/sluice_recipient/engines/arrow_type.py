"""Delta's types and partition values in Arrow's words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final, TypeAlias

from sluice_recipient.engines.installed import load
from sluice_recipient.errors import NotUsable

DeltaType: TypeAlias = str | Mapping[str, Any]

_DECIMAL: Final = re.compile(r"decimal\((\d+), ?(\d+)\)")
# How each is called with no more said; times are in microseconds, and of one zone or of none.
_PRIMITIVE: Final = {
    "string": "string",
    "long": "int64",
    "integer": "int32",
    "short": "int16",
    "byte": "int8",
    "float": "float32",
    "double": "float64",
    "boolean": "bool_",
    "binary": "binary",
    "date": "date32",
}


def to_schema(text: str) -> Any:
    """Return an Arrow schema for a schema in Delta's JSON."""
    return load("pyarrow", "url").schema([_field(each) for each in json.loads(text)["fields"]])


def to_value(text: str, type_: Any) -> Any:
    """Return a partition's value, which the log has as text, as a scalar of a column's type."""
    pyarrow = load("pyarrow", "url")
    return pyarrow.scalar(_parsed(text, type_, pyarrow.types), type_)


def _field(content: Mapping[str, Any]) -> Any:
    type_ = _type(content["type"])
    return load("pyarrow", "url").field(content["name"], type_, nullable=bool(content.get("nullable", True)))


def _type(delta: DeltaType) -> Any:
    pyarrow = load("pyarrow", "url")
    if not isinstance(delta, str):
        return _nested(delta)
    if delta in _PRIMITIVE:
        return getattr(pyarrow, _PRIMITIVE[delta])()
    if delta.startswith("timestamp"):
        return pyarrow.timestamp("us", tz=None if delta == "timestamp_ntz" else "UTC")
    if found := _DECIMAL.fullmatch(delta):
        return pyarrow.decimal128(int(found[1]), int(found[2]))
    raise NotUsable(f"a column is of the type {delta}, which this library does not read by URLs")


def _nested(delta: Mapping[str, Any]) -> Any:
    pyarrow = load("pyarrow", "url")
    if delta["type"] == "struct":
        return pyarrow.struct([_field(each) for each in delta["fields"]])
    if delta["type"] == "array":
        return pyarrow.list_(_type(delta["elementType"]))
    return pyarrow.map_(_type(delta["keyType"]), _type(delta["valueType"]))


def _parsed(text: str, type_: Any, types: Any) -> Any:
    readings = (
        (types.is_integer, int),
        (types.is_floating, float),
        (types.is_boolean, lambda word: word == "true"),
        (types.is_date, date.fromisoformat),
        (types.is_decimal, Decimal),
        (types.is_binary, str.encode),
        (types.is_timestamp, lambda word: _moment(word, is_zoned=type_.tz is not None)),
    )
    return next((read(text) for fits, read in readings if fits(type_)), text)


def _moment(text: str, *, is_zoned: bool) -> datetime:
    moment = datetime.fromisoformat(text)
    # Writers leave the zone out, and mean the same one.
    return moment if moment.tzinfo or not is_zoned else moment.replace(tzinfo=UTC)
