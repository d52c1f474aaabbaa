"""Tables in given states, made by the builder that also makes the sample."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gateway.demo.schema import Field
from gateway.demo.table_builder import PLAIN_PROTOCOL, STARTED_AT, STEP, TableBuilder
from gateway.domain.location import Location, parse_location

__all__ = [
    "NUMBERS",
    "PLAIN_PROTOCOL",
    "STARTED_AT",
    "STEP",
    "Field",
    "TableBuilder",
    "add",
    "location_of",
    "numbers",
    "remove",
    "rows",
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


def remove(path: str) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": 0, "dataChange": True}}


def location_of(builder: TableBuilder) -> Location:
    return parse_location(str(builder.directory))
