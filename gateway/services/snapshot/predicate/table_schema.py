"""The columns of a table as predicates name them, and as its files do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.predicate.data_type import FLOAT, STRING, DataType, find_type

_PHYSICAL_NAME: Final = "delta.columnMapping.physicalName"
# Spark sends filters on partition columns with this in front of the name.
_PARTITION_VALUES: Final = "partitionvalues"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column that predicates can be about."""

    # The names by which the log's values and statistics know it.
    path: tuple[str, ...]
    type: DataType
    partition: bool
    # Whether its values are compared as its type says: a collation, or padding, changes that.
    comparable: bool = True


class TableSchema:
    def __init__(self, metadata: Metadata) -> None:
        self._columns = _Struct(_fields_of(metadata.schema_string))
        self._partitions = {name.lower() for name in metadata.partition_columns}
        self._mapped = metadata.column_mapping != "none"

    def find(self, path: tuple[str, ...]) -> Field | None:
        """Return the column that a name means; None if none is, or more than one may be."""
        found = self._find(path)
        if found is None and len(path) == 1:
            found = self._find(tuple(path[0].split(".")))
        if len(path) > 1 and path[0].lower() == _PARTITION_VALUES:
            return self._find_partition(path[1:]) if found is None else None
        if found is not None:
            return found
        # What is taken from a map or an array is no column.
        if self._columns.has(path[0]):
            return None
        # A table or an alias may stand before the name.
        others = [self._find(path[index:]) for index in range(1, len(path))]
        candidates = [field for field in others if field is not None]
        return candidates[0] if len(candidates) == 1 else None

    def _find_partition(self, path: Sequence[str]) -> Field | None:
        found = self._find(path)
        return found if found is not None and found.partition else None

    def _find(self, path: Sequence[str]) -> Field | None:
        struct = self._columns
        physical: list[str] = []
        field: Mapping[str, Any] | None = None
        for name in path:
            field = struct.find(name)
            if field is None:
                return None
            physical.append(self._physical_name(field))
            struct = struct.inner(name)
        return None if field is None else self._field(field, tuple(physical), path)

    def _physical_name(self, field: Mapping[str, Any]) -> str:
        name = _notes_of(field).get(_PHYSICAL_NAME) if self._mapped else None
        return name if isinstance(name, str) else str(field["name"])

    def _field(
        self, field: Mapping[str, Any], physical: tuple[str, ...], path: Sequence[str]
    ) -> Field | None:
        if not all(map(_is_encodable, physical)):
            return None
        name = field.get("type")
        data_type = find_type(name) if isinstance(name, str) else None
        if data_type is None and not isinstance(name, str):
            return None
        notes = _notes_of(field)
        comparable = data_type is not None and not (data_type == STRING and _is_special(notes))
        return Field(
            path=physical,
            # Of what cannot be compared only nulls are counted, which does not depend on the type.
            type=_written_type(data_type or STRING, notes),
            partition=len(path) == 1 and path[0].lower() in self._partitions,
            comparable=comparable,
        )


class _Struct:
    """The fields of a struct by their names in lower case, made when the first of them is asked for."""

    def __init__(self, fields: object) -> None:
        self._fields = fields
        self._inner: dict[str, _Struct] = {}

    def find(self, name: str) -> Mapping[str, Any] | None:
        """Return the field of a name; None if there is none, or more than one."""
        return self._by_name.get(name.lower())

    def has(self, name: str) -> bool:
        """Tell whether there is one field of a name or more."""
        return name.lower() in self._by_name

    def inner(self, name: str) -> _Struct:
        """Return the fields of a field, of which one that is not a struct has none."""
        key = name.lower()
        if key not in self._inner:
            data_type = (self.find(name) or {}).get("type")
            self._inner[key] = _Struct(data_type.get("fields") if isinstance(data_type, dict) else None)
        return self._inner[key]

    @cached_property
    def _by_name(self) -> Mapping[str, Mapping[str, Any] | None]:
        found: dict[str, Mapping[str, Any] | None] = {}
        for field in self._fields if isinstance(self._fields, list) else []:
            if isinstance(field, dict) and isinstance(name := field.get("name"), str):
                key = name.lower()
                found[key] = None if key in found else field
        return found


def _is_encodable(name: str) -> bool:
    """Tell whether statistics can be asked for a name: half of a surrogate pair is in no text."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fields_of(schema: str) -> object:
    try:
        found = json.loads(schema)
    except (ValueError, RecursionError):
        return None
    return found.get("fields") if isinstance(found, dict) else None


def _notes_of(field: Mapping[str, Any]) -> Mapping[str, Any]:
    notes = field.get("metadata")
    return notes if isinstance(notes, dict) else {}


def _is_special(notes: Mapping[str, Any]) -> bool:
    padded = str(notes.get("__CHAR_VARCHAR_TYPE_STRING", "")).lower().startswith("char")
    return padded or "__COLLATIONS" in notes


def _written_type(data_type: DataType, notes: Mapping[str, Any]) -> DataType:
    # Statistics from before a float became a double are those of a float.
    return FLOAT if data_type.name == "double" and "delta.typeChanges" in notes else data_type
