"""Which columns of a table get bounds by type, and how a text of the log is read as each type."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

# Statistics are of the first columns that a table has, 32 unless it says otherwise.
MOST: Final = 64

_PHYSICAL_NAME: Final = "delta.columnMapping.physicalName"
_DECIMAL: Final = re.compile(r"decimal\([0-9]+,\s*-?[0-9]+\)")


class Family(Enum):
    """Types whose bounds are held alike."""

    INTEGER = auto()
    NUMBER = auto()
    TEXT = auto()
    BOOLEAN = auto()
    DATE = auto()
    TIMESTAMP = auto()
    LOCAL_TIMESTAMP = auto()


_FAMILIES: Final = {
    "byte": Family.INTEGER,
    "short": Family.INTEGER,
    "integer": Family.INTEGER,
    "long": Family.INTEGER,
    "float": Family.NUMBER,
    "double": Family.NUMBER,
    "string": Family.TEXT,
    "boolean": Family.BOOLEAN,
    "date": Family.DATE,
    "timestamp": Family.TIMESTAMP,
    "timestamp_ntz": Family.LOCAL_TIMESTAMP,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedColumn:
    # The names by which the log knows it.
    path: tuple[str, ...]
    # As the table's schema has it.
    type: str
    family: Family
    partition: bool

    def to_json(self) -> dict[str, Any]:
        return {"path": list(self.path), "type": self.type, "partition": self.partition}


def typed_columns(metadata: Mapping[str, Any]) -> tuple[TypedColumn, ...]:
    """Return the columns of a metaData action that are typed: partitions first, then the first others."""
    mode = (metadata.get("configuration") or {}).get("delta.columnMapping.mode", "none")
    partitions = {name.lower() for name in metadata.get("partitionColumns") or ()}
    fields = json.loads(metadata["schemaString"]).get("fields", [])
    found = list(_leaves(fields, (), partitions, is_mapped=mode.lower() != "none"))
    of_partition = [column for column in found if column.partition]
    others = [column for column in found if not column.partition]
    return (*of_partition[:MOST], *others[:MOST])


def _leaves(
    fields: Sequence[Mapping[str, Any]], above: tuple[str, ...], partitions: set[str], *, is_mapped: bool
) -> Iterator[TypedColumn]:
    for field in fields:
        notes = field.get("metadata") or {}
        name = notes.get(_PHYSICAL_NAME, field["name"]) if is_mapped else field["name"]
        path = (*above, name)
        kind = field["type"]
        if isinstance(kind, dict) and kind.get("type") == "struct":
            yield from _leaves(kind["fields"], path, set(), is_mapped=is_mapped)
        elif isinstance(kind, str) and (family := _family(kind)) is not None:
            is_partition = not above and field["name"].lower() in partitions
            yield TypedColumn(path=path, type=kind, family=family, partition=is_partition)


def _family(kind: str) -> Family | None:
    return Family.NUMBER if _DECIMAL.fullmatch(kind) else _FAMILIES.get(kind)
