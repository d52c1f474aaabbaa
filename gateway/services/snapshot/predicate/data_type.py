"""The types of columns and constants that predicates compare."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final


class Family(Enum):
    """Types whose values are held alike."""

    INTEGER = auto()
    # Held as floating point numbers, with some room for what that loses.
    NUMBER = auto()
    TEXT = auto()
    BOOLEAN = auto()
    DATE = auto()
    TIMESTAMP = auto()
    LOCAL_TIMESTAMP = auto()


@dataclass(frozen=True, slots=True)
class DataType:
    """A type by the name that a table's schema has for it."""

    name: str
    precision: int = 0
    scale: int = 0

    @property
    def family(self) -> Family:
        return _FAMILIES[self.name]

    @property
    def largest(self) -> int:
        """Return the largest of an integer type's values."""
        return int(2 ** (_BITS[self.name] - 1) - 1)

    @property
    def whole_digits(self) -> int:
        """Return how many digits a value may have before the point."""
        return self.precision - self.scale if self.name == "decimal" else len(str(self.largest))


_FAMILIES: Final = {
    "byte": Family.INTEGER,
    "short": Family.INTEGER,
    "integer": Family.INTEGER,
    "long": Family.INTEGER,
    "float": Family.NUMBER,
    "double": Family.NUMBER,
    "decimal": Family.NUMBER,
    "string": Family.TEXT,
    "boolean": Family.BOOLEAN,
    "date": Family.DATE,
    "timestamp": Family.TIMESTAMP,
    "timestamp_ntz": Family.LOCAL_TIMESTAMP,
}
_BITS: Final = {"byte": 8, "short": 16, "integer": 32, "long": 64}

LONG: Final = DataType("long")
FLOAT: Final = DataType("float")
DOUBLE: Final = DataType("double")
STRING: Final = DataType("string")
BOOLEAN: Final = DataType("boolean")
DATE: Final = DataType("date")
TIMESTAMP: Final = DataType("timestamp")
LOCAL_TIMESTAMP: Final = DataType("timestamp_ntz")

# What SQL and JSON predicates call types beside the names of the schema.
_SPELLINGS: Final = {
    "tinyint": "byte",
    "smallint": "short",
    "int": "integer",
    "bigint": "long",
    "real": "float",
    "bool": "boolean",
    "timestamp_ltz": "timestamp",
    "dec": "decimal",
    "numeric": "decimal",
}
_DECIMAL: Final = re.compile(r"(?:decimal|dec|numeric)\s*\(\s*(\d{1,2})\s*(?:,\s*(\d{1,2})\s*)?\)", re.ASCII)


def find_type(text: str) -> DataType | None:
    """Return the type of a name; None for one whose values are not compared."""
    name = text.strip().lower()
    if sized := _DECIMAL.fullmatch(name):
        return DataType("decimal", int(sized[1]), int(sized[2] or 0))
    name = _SPELLINGS.get(name, name)
    if name == "decimal":
        return DataType("decimal", 10, 0)
    return DataType(name) if name in _FAMILIES else None
