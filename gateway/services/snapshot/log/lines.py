"""Lines of JSON as columns, which is how commits and some checkpoints have their actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl
from polars.datatypes import DataTypeClass
from polars.exceptions import ComputeError

# How many are decoded at once: meanwhile they take several times as much as their text.
_AT_ONCE: Final = 4096


class LineDecoder:
    """Reads an object from each line, with a column for each of its members that is asked for."""

    def __init__(self, members: Mapping[str, pl.DataType]) -> None:
        self._members = dict(members)
        self._raw = _raw(pl.Struct(self._members))

    def decode(self, lines: Sequence[bytes]) -> pl.DataFrame:
        """Return a row for each line; raise a ``PolarsError`` where one is not what it should be.

        A member that no line has may be of another type.
        """
        parts = [self._decode(lines[at : at + _AT_ONCE]) for at in range(0, len(lines), _AT_ONCE)]
        if not parts:
            return pl.DataFrame(schema=self._members)
        found = (parts[0] if len(parts) == 1 else pl.concat(parts)).struct.unnest()
        return pl.DataFrame(
            [
                column.cast(self._members[column.name]) if column.null_count() < column.len() else column
                for column in found
            ]
        )

    def _decode(self, lines: Sequence[bytes]) -> pl.Series:
        found = pl.Series(lines, dtype=pl.Binary).cast(pl.String).str.json_decode(self._raw)
        # They are read as one list: what is one value to others must not become two here, or half a one.
        if found.len() != len(lines) or found.has_nulls():
            raise ComputeError("a line is not an object")
        return found


def split_lines(content: bytes) -> list[bytes]:
    """Return the lines that have anything in them."""
    return [line for line in content.split(b"\n") if line and not line.isspace()]


def _raw(dtype: pl.DataType | DataTypeClass) -> pl.DataType | DataTypeClass:
    """Return the type with texts in place of integers: a decoder rounds these, and drops the largest."""
    if isinstance(dtype, pl.Struct):
        return pl.Struct([pl.Field(member.name, _raw(member.dtype)) for member in dtype.fields])
    return pl.String() if dtype.is_integer() else dtype
