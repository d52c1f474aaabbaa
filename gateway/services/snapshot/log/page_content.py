"""What is in a page, unpacked: to be looked at before whoever decodes it trusts what it says."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Final

import polars as pl

from gateway.services.snapshot.log.footer import Column
from gateway.services.snapshot.log.pages import Page
from gateway.services.snapshot.log.projection import Rows, Selected, write_parquet
from gateway.services.snapshot.log.thrift import Struct
from gateway.services.snapshot.log.thrift_writer import spell

# By the numbers that the format gives to encodings, codecs and types.
_PLAIN, _LEVELS = 0, 3
_UNCOMPRESSED: Final = 0
_FIXED: Final = 7
_REPEATED: Final = 2


def values_of(content: bytes, page: Page, codec: int, path: Sequence[Column]) -> bytes:
    """Return the values of a page, as they are encoded, without the levels in front of them."""
    unpacked = _unpack(content, page, codec)
    return unpacked if page.levels is not None else unpacked[_levels_of(unpacked, path) :]


def decode_page(
    body: bytes, column: Column, num_values: int, encoding: int, *, codec: int = _UNCOMPRESSED, size: int = 0
) -> pl.Series:
    """Return values that the library decodes; it is given as many as the column says, none of them null."""
    about = spell({1: num_values, 2: encoding, 3: _LEVELS, 4: _LEVELS})
    unpacked = size or len(body)
    page = Page(
        header=spell({1: 0, 2: unpacked, 3: len(body), 5: about}),
        at=0,
        start=0,
        end=len(body),
        size=unpacked,
        num_values=num_values,
        encoding=encoding,
        is_dictionary=False,
        levels=None,
        is_compressed=True,
    )
    rows = Rows(num_rows=num_values, columns=[Selected(path=(column,), codec=codec, pages=[page])])
    return pl.read_parquet(io.BytesIO(write_parquet(body, [column], [rows]))).to_series()


def _unpack(content: bytes, page: Page, codec: int) -> bytes:
    body, size = content[page.start + (page.levels or 0) : page.end], page.size - (page.levels or 0)
    if codec == _UNCOMPRESSED or not page.is_compressed:
        return body
    if size <= 0:
        return b""
    # The library has all codecs, and unpacks a page when that is a value of some column.
    column = Column(name="page", element=Struct({1: _FIXED, 2: size, 3: 0}), leaf=0)
    return bytes(decode_page(body, column, 1, _PLAIN, codec=codec, size=size).item())


def _levels_of(unpacked: bytes, path: Sequence[Column]) -> int:
    """Return how long the levels are, whose lengths are told where there are any."""
    repetitions = [column.element.find(3) for column in path]
    at = 0
    for is_there in (_REPEATED in repetitions, any(repetitions)):
        if is_there:
            at += 4 + int.from_bytes(unpacked[at : at + 4], "little")
    return min(at, len(unpacked))
