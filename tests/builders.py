"""Tables in given states, made by the builder that also makes the sample."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gateway.demo.deletion_vector import inline_vector
from gateway.demo.schema import Field
from gateway.demo.table_builder import PLAIN_PROTOCOL, STARTED_AT, STEP, TableBuilder
from gateway.demo.table_feature import configuration_of, protocol_of, with_features
from gateway.domain.location import Location, parse_location

__all__ = [
    "NUMBERS",
    "PLAIN_PROTOCOL",
    "STARTED_AT",
    "STEP",
    "Field",
    "TableBuilder",
    "add",
    "cdc",
    "configuration_of",
    "inline_vector",
    "location_of",
    "numbers",
    "protocol_of",
    "remove",
    "rows",
    "with_features",
]

NUMBERS = (Field("number", "long"),)


def numbers(directory: Path, **options: Any) -> TableBuilder:
    """Return a builder of a table with one column."""
    return TableBuilder(directory / "numbers", NUMBERS, **options)


def rows(values: Iterable[int]) -> list[dict[str, int]]:
    return [{"number": value} for value in values]


def add(path: str, **fields: Any) -> dict[str, Any]:
    """Return an add action without a file behind it."""
    action = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}
    return {"add": {**action, **fields}}


def remove(path: str, **fields: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": 0, "dataChange": True, **fields}}


def cdc(path: str, **fields: Any) -> dict[str, Any]:
    """Return an action that tells of a file of changes, without a file behind it."""
    return {"cdc": {"path": path, "partitionValues": {}, "size": 1, "dataChange": False, **fields}}


def location_of(builder: TableBuilder) -> Location:
    return parse_location(str(builder.directory))
