"""Integers that parquet writes as differences, in blocks of blocks of equal width."""

from __future__ import annotations

from typing import Final

import polars as pl

from gateway.services.snapshot.log.footer import Column
from gateway.services.snapshot.log.page_content import decode_page
from gateway.services.snapshot.log.thrift import Malformed, Struct, ThriftReader

# By the number that the format gives to the encoding, and to the type of long integers.
DIFFERENCES: Final = 5
_LONG: Final = 2
_MAX_WIDTH: Final = 64
# Writers have 128 to 2048 in a block; the format says in which steps, and those of a part of it.
_MAX_BLOCK: Final = 64 * 1024
_BLOCK_STEP, _PART_STEP = 128, 32


class Deltas:
    """As many as they are told to be, and no more than there may be; walked through block by block."""

    def __init__(self, values: bytes, start: int, most: int) -> None:
        self._values = values
        self._start = start
        reader = ThriftReader(values, start, len(values), values=0)
        block, parts, self.count = reader.read_varint(), reader.read_varint(), reader.read_varint()
        reader.read_zigzag()
        if self.count > most:
            raise Malformed("a page has more values than it is told to have")
        if not 0 < parts <= block <= _MAX_BLOCK or block % _BLOCK_STEP or block % (_PART_STEP * parts):
            raise Malformed("a page has its values in blocks that are none")
        left = self.count - 1
        while left > 0:
            left -= _pass_block(reader, block // parts, parts, left)
        # Where what comes after them begins.
        self.end = reader.at

    def decode(self) -> pl.Series:
        if not self.count:
            return pl.Series(dtype=pl.Int64)
        column = Column(name="deltas", element=Struct({1: _LONG, 3: 0}), leaf=0)
        return decode_page(self._values[self._start : self.end], column, self.count, DIFFERENCES)


def _pass_block(reader: ThriftReader, size: int, parts: int, left: int) -> int:
    """Return how many there may be in a block, of parts of a size, that is passed."""
    reader.read_zigzag()
    # The widths of parts that are not there may be anything.
    widths = reader.read_bytes(parts)[: -(-left // size)]
    if max(widths) > _MAX_WIDTH:
        raise Malformed("a number is wider than any")
    reader.read_bytes(sum(widths) * size // 8)
    return size * parts
