"""A parquet file made anew of another one's pages: with some of its columns, and a description of our own.

Whoever reads it trusts what is written in it: how deep it is nested, and how much of what to make room for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from polars.datatypes import DataType, DataTypeClass, Struct

from gateway.services.snapshot.log.footer import MAGIC, Column
from gateway.services.snapshot.log.logical_type import spell_logical_type
from gateway.services.snapshot.log.pages import Page
from gateway.services.snapshot.log.thrift_writer import I64, Spelled, spell

# What to keep of a column, by the names of what is in it; None: all of it.
Wanted = Mapping[str, "Wanted | None"]

_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """The pages of a column in some rows."""

    # Behind the groups that it is in.
    path: tuple[Column, ...]
    codec: int
    pages: Sequence[Page]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    num_rows: int
    columns: Sequence[Selected]


def wanted_of(fields: Mapping[str, DataType | DataTypeClass]) -> Wanted:
    """Return what to keep for fields of these types."""
    return {name: _members(dtype) for name, dtype in fields.items()}


def select_columns(columns: Sequence[Column], wanted: Wanted) -> tuple[Column, ...]:
    """Return the columns that are wanted, with what is wanted of them."""
    kept = [_select(column, wanted[column.name]) for column in columns if column.name in wanted]
    return tuple(column for column in kept if any(column.leaves))


def paths_of(columns: Sequence[Column], above: tuple[Column, ...] = ()) -> Iterator[tuple[Column, ...]]:
    """Return each column that has values, behind the groups that it is in."""
    for column in columns:
        path = (*above, column)
        if column.leaf is not None:
            yield path
        yield from paths_of(column.children, path)


def write_parquet(content: bytes, columns: Sequence[Column], groups: Sequence[Rows]) -> bytes:
    """Return a file of these columns, whose pages are another file's."""
    parts: list[bytes | memoryview] = [MAGIC]
    writer = _Writer(memoryview(content), parts)
    row_groups = [writer.write(group) for group in groups]
    root = spell({4: "schema", 5: len(columns)})
    footer = spell(
        {
            1: _VERSION,
            2: [root, *(element for column in columns for element in _spell_column(column))],
            3: I64(sum(group.num_rows for group in groups)),
            4: row_groups,
        }
    )
    return b"".join([*parts, footer, len(footer).to_bytes(4, "little"), MAGIC])


def _members(dtype: DataType | DataTypeClass) -> Wanted | None:
    # A list or a map has a level of its own in between, whose name is up to the writer.
    return wanted_of({each.name: each.dtype for each in dtype.fields}) if isinstance(dtype, Struct) else None


def _select(column: Column, wanted: Wanted | None) -> Column:
    if wanted is None or column.leaf is not None:
        return column
    kept = select_columns(column.children, wanted)
    # Whether there is a group in a row is told by what is in it, even where nothing of that is wanted.
    return replace(column, children=kept or column.children[:1])


class _Writer:
    def __init__(self, content: memoryview, parts: list[bytes | memoryview]) -> None:
        self._content = content
        self._parts = parts
        self._at = sum(map(len, parts))

    def write(self, group: Rows) -> Spelled:
        """Write the pages of some rows; return what says where they are."""
        began = self._at
        chunks = [self._write_chunk(selected) for selected in group.columns]
        return spell({1: chunks, 2: I64(self._at - began), 3: I64(group.num_rows)})

    def _write_chunk(self, selected: Selected) -> Spelled:
        began = self._at
        dictionary = data = None
        for page in selected.pages:
            if page.is_dictionary:
                dictionary = self._at
            elif data is None:
                data = self._at
            self._append(page.header)
            self._append(self._content[page.start : page.end])
        about = spell(
            {
                1: selected.path[-1].element.integer(1),
                2: sorted({page.encoding for page in selected.pages}),
                3: [column.name for column in selected.path],
                4: selected.codec,
                5: I64(sum(page.num_values for page in selected.pages)),
                6: I64(sum(len(page.header) + page.size for page in selected.pages)),
                7: I64(self._at - began),
                9: I64(data if data is not None else began),
                11: None if dictionary is None else I64(dictionary),
            }
        )
        return spell({2: I64(began), 3: about})

    def _append(self, part: bytes | memoryview) -> None:
        self._parts.append(part)
        self._at += len(part)


def _spell_column(column: Column) -> Iterator[Spelled]:
    element = column.element
    numbers = {number: element.find(number) for number in (1, 2, 3)}
    yield spell(
        {
            **numbers,
            4: column.name,
            5: len(column.children) or None,
            **{number: element.find(number) for number in (6, 7, 8, 9)},
            10: spell_logical_type(element.struct(10)),
        }
    )
    for child in column.children:
        yield from _spell_column(child)
