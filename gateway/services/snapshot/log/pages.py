"""The pages that the values of a parquet column lie in, read by their headers alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gateway.services.snapshot.log.footer import Chunk
from gateway.services.snapshot.log.thrift import Malformed, Shape, Struct, ThriftReader
from gateway.services.snapshot.log.thrift_writer import Spelled, spell

# By the numbers that the format gives to fields.
_HEADER: Final[Shape] = {
    **dict.fromkeys((1, 2, 3)),
    5: dict.fromkeys((1, 2, 3, 4)),
    7: dict.fromkeys((1, 2, 3)),
    8: dict.fromkeys((1, 2, 3, 4, 5, 6, 7)),
}
_DATA, _INDEX, _DICTIONARY, _DATA_V2 = range(4)
# The field that says more of a page of a kind.
_ABOUT: Final = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}
# Statistics of a page are in its header, and its values may be long.
_MAX_VALUES: Final = 1000
_MAX_I32: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    # As who reads on may have it: it says nothing that was not looked at.
    header: Spelled
    # Where it lies in the file, with the header that it has there; and its bytes alone.
    at: int
    start: int
    end: int
    # How long they are, levels included, once they are decompressed.
    size: int
    # Nulls included; none of a dictionary's.
    num_values: int
    encoding: int
    is_dictionary: bool
    # Levels that are in front of what is compressed; None where they are compressed, too.
    levels: int | None
    is_compressed: bool

    @property
    def length(self) -> int:
        return self.end - self.start


def walk_pages(content: bytes, end: int, chunk: Chunk) -> Iterator[Page]:
    """Return the pages of a chunk up to its last value; raise ``Malformed`` where there are fewer."""
    at, left = chunk.start, chunk.num_values
    while left > 0:
        page = _read_page(content, at, end)
        yield page
        at, left = page.end, left - page.num_values


def _read_page(content: bytes, at: int, end: int) -> Page:
    reader = ThriftReader(content, at, end, values=_MAX_VALUES)
    header = reader.read_struct(_HEADER)
    kind, size, length = header.integer(1), _size(header, 2), _size(header, 3)
    about = header.struct(_ABOUT[kind]) if kind in _ABOUT else None
    if about is None or length > end - reader.at:
        raise Malformed("a page is of no known kind, or cut short")
    counted = _size(about, 1)
    if kind == _DICTIONARY and counted > size:
        raise Malformed("a dictionary has more values than bytes")
    if kind == _DATA_V2 and max(_size(about, 2), _size(about, 3)) > counted:
        raise Malformed("a page has more nulls or rows than values")
    spelled = spell({1: kind, 2: size, 3: length, _ABOUT[kind]: _spell_about(kind, about)})
    return Page(
        header=spelled,
        at=at,
        start=reader.at,
        end=reader.at + length,
        size=size,
        num_values=0 if kind == _DICTIONARY else counted,
        encoding=about.integer(4 if kind == _DATA_V2 else 2),
        is_dictionary=kind == _DICTIONARY,
        levels=_levels(about, length) if kind == _DATA_V2 else None,
        is_compressed=kind != _DATA_V2 or about.find(7) != 0,
    )


def _spell_about(kind: int, about: Struct) -> Spelled:
    if kind == _DATA:
        return spell({number: about.integer(number) for number in (1, 2, 3, 4)})
    if kind == _DICTIONARY:
        return spell({1: about.integer(1), 2: about.integer(2)})
    is_compressed = about.find(7) != 0
    return spell({**{number: about.integer(number) for number in (1, 2, 3, 4, 5, 6)}, 7: is_compressed})


def _levels(about: Struct, length: int) -> int:
    levels = _size(about, 5) + _size(about, 6)
    if levels > length:
        raise Malformed("a page is shorter than its levels")
    return levels


def _size(found: Struct, number: int) -> int:
    size = found.size(number)
    if size > _MAX_I32:
        raise Malformed("a page is larger than any")
    return size
