"""Whether data of an older schema can be read by a newer one: only by columns that were added."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

from gateway.services.snapshot.log.fault import faulty
from gateway.services.snapshot.log.metadata import Metadata

_PHYSICAL_NAME: Final = "delta.columnMapping.physicalName"


def find_break(old: Metadata, new: Metadata) -> str | None:
    """Return what keeps data of the old schema from being read by the new one; None when nothing does."""
    before, after = old.column_mapping, new.column_mapping
    if before != "none" == after:
        return "the mapping of its columns was taken away"
    if before not in ("none", after):
        return "the way in which columns are mapped changed"
    if old.partition_columns != new.partition_columns:
        return "its partition columns changed"
    try:
        return next(_breaks_of_type(_schema(old), _schema(new), ""), None)
    except (LookupError, TypeError, AttributeError, RecursionError) as exc:
        raise faulty("is damaged: its schema is none") from exc


def _schema(metadata: Metadata) -> Any:
    try:
        return json.loads(metadata.schema_string)
    except ValueError as exc:
        raise faulty("is damaged: its schema is not JSON") from exc


def _breaks_of_type(old: Any, new: Any, name: str) -> Iterator[str]:
    kinds = [part.get("type") if isinstance(part, Mapping) else None for part in (old, new)]
    if kinds == ["struct", "struct"]:
        yield from _breaks_of_struct(old, new, name)
    elif kinds == ["array", "array"]:
        yield from _breaks_of_parts(old, new, name, types=("elementType",), nulls="containsNull")
    elif kinds == ["map", "map"]:
        yield from _breaks_of_parts(old, new, name, types=("keyType", "valueType"), nulls="valueContainsNull")
    elif old != new:
        yield f"the type of column {name!r} changed"


def _breaks_of_struct(old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> Iterator[str]:
    later = {_key(field): field for field in new.get("fields", ())}
    for field in old.get("fields", ()):
        path = f"{name}.{field['name']}" if name else str(field["name"])
        found = later.get(_key(field))
        if found is None or str(found["name"]).lower() != str(field["name"]).lower():
            yield f"column {path!r} was dropped or renamed"
            continue
        if field.get("nullable", True) and not found.get("nullable", True):
            yield f"column {path!r} no longer takes nulls"
        yield from _breaks_of_type(field.get("type"), found.get("type"), path)


def _breaks_of_parts(
    old: Mapping[str, Any], new: Mapping[str, Any], name: str, *, types: tuple[str, ...], nulls: str
) -> Iterator[str]:
    if old.get(nulls, True) and not new.get(nulls, True):
        yield f"column {name!r} no longer takes nulls"
    yield from chain.from_iterable(_breaks_of_type(old.get(part), new.get(part), name) for part in types)


def _key(field: Mapping[str, Any]) -> str:
    """Return by what the files know a column: the same one under another name is renamed, not new."""
    physical = (field.get("metadata") or {}).get(_PHYSICAL_NAME)
    return str(field["name"] if physical is None else physical).lower()
