"""What a parquet file says of itself at its end: its columns, and where their values lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.services.snapshot.log.beyond import Beyond
from gateway.services.snapshot.log.logical_type import LOGICAL_TYPE
from gateway.services.snapshot.log.thrift import Listed, Malformed, Shape, Struct, ThriftReader

MAGIC: Final = b"PAR1"
_ENCRYPTED: Final = b"PARE"
_TAIL: Final = 8
# Fifty times what a checkpoint of twenty million files has.
_MAX_FOOTER: Final = 64 * 1024 * 1024
# How many values it describes itself by, each of which takes microseconds: files have one for five bytes.
_MIN_VALUES: Final = 10_000
_MAX_VALUES: Final = 2_000_000
_BYTES_PER_VALUE: Final = 2
# A checkpoint with typed statistics has three columns for each of the table's.
_MAX_COLUMNS: Final = 100_000
_MAX_ROW_GROUPS: Final = 20_000
_MAX_DEPTH: Final = 64
# It is told again for each column that is below it, in each row group.
_MAX_NAME: Final = 4 * 1024

# By the numbers that the format gives to fields.
_ELEMENT: Final[Shape] = {
    **dict.fromkeys((1, 2, 3, 4, 5, 6, 7, 8, 9)),
    10: LOGICAL_TYPE,
}
_CHUNK: Final[Shape] = {
    1: None,
    3: dict.fromkeys((1, 4, 5, 9, 11)),
    8: {},
}
_ROW_GROUP: Final[Shape] = {1: Listed(of=_CHUNK, most=_MAX_COLUMNS, what="columns"), 3: None}
_FOOTER: Final[Shape] = {
    2: Listed(of=_ELEMENT, most=_MAX_COLUMNS, what="columns"),
    4: Listed(of=_ROW_GROUP, most=_MAX_ROW_GROUPS, what="row groups"),
    8: {},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column, or a group of them."""

    name: str
    element: Struct
    children: tuple[Column, ...] = ()
    # Its number among those that have values; None: a group.
    leaf: int | None = None

    @property
    def leaves(self) -> Iterator[Column]:
        if self.leaf is not None:
            yield self
        for child in self.children:
            yield from child.leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The values of a column in some rows."""

    codec: int
    num_values: int
    # Where its pages begin.
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroup:
    num_rows: int
    _chunks: Sequence[Struct]

    def chunk(self, leaf: int) -> Chunk:
        """Return where the values of a column are."""
        found = self._chunks[leaf]
        if found.has(8):
            raise Malformed("it is encrypted")
        if found.has(1):
            raise Malformed("it has its values in another file")
        about = found.struct(3)
        if about is None:
            raise Malformed("it does not say where its values are")
        data, dictionary = about.size(9), about.find(11) or 0
        start = dictionary if 0 < dictionary < data else data
        return Chunk(codec=about.integer(4), num_values=about.size(5), start=start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Footer:
    columns: tuple[Column, ...]
    row_groups: tuple[RowGroup, ...]
    # Where it begins, and the values end.
    start: int


def read_footer(content: bytes) -> Footer:
    """Return what a file says; raise ``Malformed`` where that is not parquet, ``Beyond`` where it is much."""
    end = len(content) - _TAIL
    if content[-len(_ENCRYPTED) :] == _ENCRYPTED:
        raise Malformed("it is encrypted")
    if end < len(MAGIC) or content[-len(MAGIC) :] != MAGIC:
        raise Malformed("it is not parquet, or is cut short")
    size = int.from_bytes(content[end : end + 4], "little")
    if size > end - len(MAGIC):
        raise Malformed("it describes itself at a length that is not parquet's")
    if size > _MAX_FOOTER:
        raise Beyond(f"describes itself by more than {_MAX_FOOTER} bytes")
    values = min(_MIN_VALUES + len(content) // _BYTES_PER_VALUE, _MAX_VALUES)
    found = ThriftReader(content, end - size, end, values=values).read_struct(_FOOTER)
    if found.has(8):
        raise Malformed("it is encrypted")
    columns, count = _build_columns(found.structs(2))
    row_groups = tuple(_row_group(group, count) for group in found.structs(4))
    return Footer(columns=columns, row_groups=row_groups, start=end - size)


def _build_columns(elements: Sequence[Struct]) -> tuple[tuple[Column, ...], int]:
    """Return the columns, and how many of them have values."""
    if not elements:
        raise Malformed("it has no columns")
    tree = _Tree(elements)
    root = tree.build(0)
    if tree.at < len(elements):
        raise Malformed("it has columns that belong nowhere")
    return root.children, tree.leaves


def _row_group(found: Struct, leaves: int) -> RowGroup:
    chunks = found.structs(1)
    if len(chunks) != leaves:
        raise Malformed("it has rows without some columns")
    return RowGroup(num_rows=found.size(3), _chunks=chunks)


class _Tree:
    """Columns, built of elements that lie one after the other, each group before what is in it."""

    def __init__(self, elements: Sequence[Struct]) -> None:
        self._elements = elements
        self.at = 0
        self.leaves = 0

    def build(self, depth: int) -> Column:
        if depth > _MAX_DEPTH:
            raise Beyond(f"has columns that are nested more than {_MAX_DEPTH} deep")
        if self.at >= len(self._elements):
            raise Malformed("it has columns that are not there")
        element = self._elements[self.at]
        self.at += 1
        name = element.text(4)
        if len(name) > _MAX_NAME:
            raise Beyond(f"has a column with a name of more than {_MAX_NAME} letters")
        if depth and element.has(1):
            self.leaves += 1
            return Column(name=name, element=element, leaf=self.leaves - 1)
        count = element.find(5) or 0
        # One by one: a number may claim any count, and then they end.
        return Column(name=name, element=element, children=tuple(self.build(depth + 1) for _ in range(count)))
