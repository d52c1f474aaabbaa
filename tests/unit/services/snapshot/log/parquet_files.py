"""Parquet files for tests: as the library writes them, and by hand where it never would."""

from __future__ import annotations

import gzip
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import polars as pl

from gateway.services.snapshot.log.footer import MAGIC
from gateway.services.snapshot.log.thrift_writer import I64, Field, Spelled, spell

BOOLEAN, LONG, INT96, DOUBLE, TEXT, FIXED = 0, 2, 3, 5, 6, 7
PLAIN, LEVELS, DIFFERENCES, LENGTHS, SHARED, DICTIONARY, SPLIT = 0, 3, 5, 6, 7, 8, 9
UNCOMPRESSED, GZIP = 0, 2


def parquet(frame: pl.DataFrame, **options: Any) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, **options)
    return buffer.getvalue()


def file_of(fields: Mapping[int, Field | None] | bytes, body: bytes = b"") -> bytes:
    """Return a file with a description of its own, given as fields or as it is spelled."""
    footer = fields if isinstance(fields, bytes) else spell(fields)
    return MAGIC + body + footer + len(footer).to_bytes(4, "little") + MAGIC


def described(
    *elements: Spelled, row_groups: Sequence[Spelled] = (), encryption: Spelled | None = None
) -> bytes:
    return file_of({1: 1, 2: list(elements), 3: I64(0), 4: list(row_groups), 8: encryption})


def group(name: str, children: int) -> Spelled:
    return spell({3: 1, 4: name, 5: children})


def leaf(name: str) -> Spelled:
    return spell({1: TEXT, 3: 1, 4: name})


@dataclass(frozen=True, kw_only=True)
class Values:
    """Of one column, in pages that are all the same: as they are encoded, behind their levels."""

    encoded: bytes
    count: int
    kind: int = TEXT
    # Of values that are all as long.
    length: int | None = None
    encoding: int = PLAIN
    codec: int = UNCOMPRESSED
    # As the second version of the format has them, with levels that are not compressed.
    is_v2: bool = False
    is_optional: bool = False
    # Without any, one in two is null where it is optional, the first not.
    levels: bytes = b""
    pages: int = 1

    @property
    def page(self) -> bytes:
        levels = (self.levels or _alternating(self.count)) if self.is_optional else b""
        if self.is_v2:
            body = self._compress(self.encoded)
            about = {1: self.count, 2: self.count // 2 if self.is_optional else 0, 3: self.count}
            header = {8: spell({**about, 4: self.encoding, 5: len(levels), 6: 0})}
            size, content = len(levels) + len(self.encoded), levels + body
        else:
            length = len(levels).to_bytes(4, "little") if self.is_optional else b""
            header = {5: spell({1: self.count, 2: self.encoding, 3: LEVELS, 4: LEVELS})}
            size = len(length) + len(levels) + len(self.encoded)
            content = self._compress(length + levels + self.encoded)
        return spell({1: 3 if self.is_v2 else 0, 2: size, 3: len(content), **header}) + content

    def _compress(self, content: bytes) -> bytes:
        return gzip.compress(content, mtime=0) if self.codec == GZIP else content


def column_file(path: Sequence[str], values: Values, padding: int = 0) -> bytes:
    """Return a file of one column, in groups that are always there."""
    return columns_file({tuple(path): values}, padding)


def columns_file(columns: Mapping[tuple[str, ...], Values], padding: int = 0) -> bytes:
    """Return a file of columns with as many values each, those of a group one after the other."""
    chunks, body = [], b""
    for path, values in columns.items():
        pages = values.page * values.pages
        at, count = I64(len(MAGIC) + len(body)), I64(values.count * values.pages)
        size = I64(len(pages))
        about: dict[int, Field | None] = {1: values.kind, 2: [values.encoding], 3: list(path)}
        about |= {4: values.codec, 5: count, 6: size, 7: size, 9: at}
        chunks.append(spell({2: at, 3: spell(about)}))
        body += pages
    row_group = spell({1: chunks, 2: I64(len(body)), 3: count})
    elements = _elements("schema", columns)
    return file_of({1: 1, 2: elements, 3: count, 4: [row_group]}, body + b"\0" * padding)


def _elements(name: str, columns: Mapping[tuple[str, ...], Values]) -> list[Spelled]:
    """Return a group, and what is in it, by what is left of the paths."""
    if () in columns:
        values = columns[()]
        is_text = values.kind == TEXT
        about: dict[int, Field | None] = {1: values.kind, 2: values.length, 3: int(values.is_optional)}
        return [spell({**about, 4: name, 6: 0 if is_text else None})]
    members: dict[str, dict[tuple[str, ...], Values]] = {}
    for (first, *rest), values in columns.items():
        members.setdefault(first, {})[tuple(rest)] = values
    below = [each for member, inner in members.items() for each in _elements(member, inner)]
    return [spell({3: 0, 4: name, 5: len(members)}), *below]


def texts_file(path: Sequence[str], num_values: int, body: bytes, encoding: int, pages: int = 1) -> bytes:
    """Return a file of one column of texts without nulls, in so many pages that are all the same."""
    return column_file(path, Values(encoded=body, count=num_values, encoding=encoding, pages=pages))


def _alternating(count: int) -> bytes:
    """Return levels of a value, a null, and so on."""
    packed = bytes([0b01010101]) * (-(-count // 8))
    return varint(len(packed) << 1 | 1) + packed


def julian(day: int) -> bytes:
    """Return a day, since 1970, as INT96 has it."""
    return b"\0" * 8 + (day + 2_440_588).to_bytes(4, "little")


def plain(*texts: bytes) -> bytes:
    return b"".join(len(text).to_bytes(4, "little") + text for text in texts)


def with_lengths(*texts: bytes) -> bytes:
    return differences([len(text) for text in texts]) + b"".join(texts)


def with_prefixes(*texts: bytes) -> bytes:
    """Return texts as what each shares with the one before, and the rest of it."""
    shared = [0, *(_shared(before, after) for before, after in pairwise(texts))]
    rests = [text[length:] for text, length in zip(texts, shared, strict=True)]
    return differences(shared) + with_lengths(*rests)


def _shared(before: bytes, after: bytes) -> int:
    pairs = enumerate(zip(before, after, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(before), len(after)))


def shared_prefixes(text: bytes, count: int) -> bytes:
    """Return a text so many times, each but the first as what it shares with the one before."""
    suffixes = differences([len(text), *([0] * (count - 1))])
    return differences([0, *([len(text)] * (count - 1))]) + suffixes + text


def differences(numbers: Sequence[int]) -> bytes:
    """Return integers as their differences, in blocks of 128, each in 4 parts of 32."""
    spelled = varint(128) + varint(4) + varint(len(numbers)) + varint(_zigzag(numbers[0]))
    steps = [after - before for before, after in pairwise(numbers)]
    for at in range(0, len(steps), 128):
        block = steps[at : at + 128]
        least = min(block)
        widths = [max(each - least for each in part).bit_length() for part in _parts(block)]
        spelled += varint(_zigzag(least)) + bytes(widths)
        for part, width in zip(_parts(block), widths, strict=True):
            packed = sum((each - least) << width * place for place, each in enumerate(part))
            spelled += packed.to_bytes(4 * width, "little")
    return spelled


def _zigzag(number: int) -> int:
    return 2 * number if number >= 0 else -2 * number - 1


def _parts(block: Sequence[int]) -> list[Sequence[int]]:
    return [block[at : at + 32] or [min(block)] for at in range(0, 128, 32)]


def varint(number: int) -> bytes:
    spelled = b""
    while number > 127:
        spelled, number = spelled + bytes([number & 127 | 128]), number >> 7
    return spelled + bytes([number])
