"""Writes the compact protocol of Thrift, as far as parquet's description of itself needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Union

# Integers, texts, structs as they are spelled already, and lists of these.
Field = Union[int, str, "Spelled", Sequence["int | str | Spelled"]]

# As the protocol numbers the types of fields.
_TRUE, _FALSE, _BYTE, _I32, _I64, _BINARY, _LIST, _STRUCT = 1, 2, 3, 5, 6, 8, 9, 12
_MAX_SHORT: Final = 14
# Numbers of one byte, which most are; in longer ones the eighth bit says that more follows.
_SHORT: Final = [bytes([number]) for number in range(128)]


class Spelled(bytes):
    """A struct in the bytes of the protocol."""


class I64(int):
    """An integer of a field that holds long ones."""


class I8(int):
    """An integer of a field that holds a byte."""


def spell(fields: Mapping[int, Field | None]) -> Spelled:
    """Return a struct with fields by their number, in ascending order, without those that are None."""
    spelled, last = bytearray(), 0
    for number, value in fields.items():
        if value is not None:
            kind, content = _spell(value)
            spelled.append((number - last) << 4 | kind)
            spelled += content
            last = number
    spelled.append(0)
    return Spelled(spelled)


def _spell(value: Field) -> tuple[int, bytes]:
    # By the type itself: there are many, and most are of the first.
    kind = type(value)
    if kind is int or kind is I64:
        return (_I32 if kind is int else _I64), _zigzag(value)  # type: ignore[arg-type]
    if isinstance(value, Spelled):
        return _STRUCT, value
    if isinstance(value, int):
        return _spell_small(value)
    if isinstance(value, str):
        text = value.encode()
        return _BINARY, _varint(len(text)) + text
    return _LIST, _list(value)


def _spell_small(value: int) -> tuple[int, bytes]:
    if isinstance(value, bool):
        # Its type says it all.
        return (_TRUE if value else _FALSE), b""
    return _BYTE, bytes([value])


def _list(values: Sequence[int | str | Spelled]) -> bytes:
    spelled = [_spell(value) for value in values]
    kind = spelled[0][0] if spelled else _STRUCT
    count = len(spelled)
    head = bytes([count << 4 | kind]) if count <= _MAX_SHORT else bytes([0xF0 | kind]) + _varint(count)
    return head + b"".join(content for _, content in spelled)


def _zigzag(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else ~(value << 1))


def _varint(value: int) -> bytes:
    if value < len(_SHORT):
        return _SHORT[value]
    spelled = bytearray()
    while value >= len(_SHORT):
        spelled.append(value & 127 | 128)
        value >>= 7
    spelled.append(value)
    return bytes(spelled)
