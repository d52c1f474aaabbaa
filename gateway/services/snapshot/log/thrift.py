"""Reads the compact protocol of Thrift, in which parquet describes itself, and trusts none of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Union

from gateway.services.snapshot.log.beyond import Beyond

# What is read of a struct, by the number of a field: a struct's own fields, a list, or nothing of the kind.
Shape = Mapping[int, "Shape | Listed | None"]
Value = Union[int, bytes, "Struct", list["Struct"]]

# No field that parquet knows lies deeper than a dozen; who reads on may do so by recursion.
_MAX_DEPTH: Final = 32
_MAX_VARINT: Final = 10
_MAX_FIELD: Final = 2**15 - 1
# As the protocol numbers the types of fields.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_INTEGERS: Final = frozenset((_I16, _I32, _I64))
_LISTS: Final = frozenset((_LIST, _SET))
_TRUTHS: Final = frozenset((_TRUE, _FALSE))
_WIDTHS: Final = {_BYTE: 1, _DOUBLE: 8}
_NO_FIELDS: Final[Shape] = {}
_LONG_LIST: Final = 15


class Malformed(Exception):
    """Bytes are not what they should be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A list of structs, and how many of them are read."""

    of: Shape
    most: int
    # What they are, for who is told that there are more.
    what: str


class Struct:
    """Fields by their number; who asks for one of another type than it has is told that it is malformed."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[int, Value]) -> None:
        self._fields = fields

    def has(self, number: int) -> bool:
        return number in self._fields

    def find(self, number: int) -> int | None:
        """Return an integer; None without it."""
        value = self._fields.get(number)
        if value is not None and not isinstance(value, int):
            raise Malformed("a number is none")
        return value

    def integer(self, number: int) -> int:
        value = self.find(number)
        if value is None:
            raise Malformed("a number is missing")
        return value

    def size(self, number: int) -> int:
        """Return an integer that counts something."""
        value = self.integer(number)
        if value < 0:
            raise Malformed("a size is negative")
        return value

    def text(self, number: int) -> str:
        value = self._fields.get(number)
        if not isinstance(value, bytes):
            raise Malformed("a text is missing")
        try:
            return value.decode()
        except UnicodeDecodeError as exc:
            raise Malformed("a text is not UTF-8") from exc

    def struct(self, number: int) -> Struct | None:
        value = self._fields.get(number)
        if value is not None and not isinstance(value, Struct):
            raise Malformed("a struct is none")
        return value

    def structs(self, number: int) -> list[Struct]:
        value = self._fields.get(number)
        if not isinstance(value, list):
            raise Malformed("a list is missing")
        return value


_NOTHING: Final = Struct({})


class ThriftReader:
    """Reads within bounds: none of what it is told makes it take more than the bytes that there are."""

    def __init__(self, content: bytes, start: int, end: int, *, values: int) -> None:
        self._content = content
        self._end = end
        # How many may be read, skipped ones included: each takes time, and some take no more than a byte.
        self._values = values
        self.at = start

    def read_struct(self, shape: Shape, depth: int = 0) -> Struct:
        """Return the fields of a struct that the shape has; skip the others."""
        fields: dict[int, Value] = {}
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            number = number + step if step else self.read_zigzag()
            if not 0 < number <= _MAX_FIELD:
                raise Malformed("a field has a number that there is none of")
            if number in shape:
                fields[number] = self._read(kind, shape[number], depth + 1)
            else:
                self._skip(kind, depth + 1)
        # Without any it takes no memory: a list may have nothing but such.
        return Struct(fields) if fields else _NOTHING

    def read_zigzag(self) -> int:
        value = self.read_varint()
        return (value >> 1) ^ -(value & 1)

    def read_varint(self) -> int:
        value = self._byte()
        # The eighth bit says that more follows.
        if value <= 127:  # noqa: PLR2004
            return value
        value &= 127
        for place in range(1, _MAX_VARINT):
            byte = self._byte()
            value |= (byte & 127) << 7 * place
            if byte <= 127:  # noqa: PLR2004
                return value
        raise Malformed("a number has no end")

    def read_bytes(self, length: int) -> bytes:
        start = self.at
        self._pass(length)
        return self._content[start : self.at]

    def _read(self, kind: int, shape: Shape | Listed | None, depth: int) -> Value:
        self._count(depth)
        if isinstance(shape, Listed):
            return self._read_list(kind, shape, depth)
        if kind == _STRUCT:
            return self.read_struct(shape or _NO_FIELDS, depth)
        return self.read_bytes(self.read_varint()) if kind == _BINARY else self._read_number(kind)

    def _read_number(self, kind: int) -> int:
        if kind in _INTEGERS:
            return self.read_zigzag()
        if kind in _TRUTHS:
            return kind == _TRUE
        if kind == _BYTE:
            return self._byte()
        raise Malformed("a field has a type that it cannot have")

    def _read_list(self, kind: int, listed: Listed, depth: int) -> list[Struct]:
        if kind not in _LISTS:
            raise Malformed("a list is none")
        kind, count = self._list()
        if count and kind != _STRUCT:
            raise Malformed("a list is not one of structs")
        if count > listed.most:
            raise Beyond(f"has more than {listed.most} {listed.what}")
        found = []
        for _ in range(count):
            self._count(depth + 1)
            found.append(self.read_struct(listed.of, depth + 1))
        return found

    def _skip(self, kind: int, depth: int) -> None:
        self._count(depth)
        if kind in _INTEGERS:
            self.read_varint()
        elif kind == _BINARY:
            self._pass(self.read_varint())
        elif kind == _STRUCT:
            while head := self._byte():
                if not head >> 4:
                    self.read_varint()
                self._skip(head & 15, depth + 1)
        elif kind in _LISTS or kind == _MAP:
            self._skip_all(kind, depth)
        elif kind not in _TRUTHS:
            self._pass(_width(kind))

    def _skip_all(self, kind: int, depth: int) -> None:
        """Skip the values of a list or a map, where a truth value takes a byte of its own."""
        kinds, count = self._map() if kind == _MAP else _alone(*self._list())
        for _ in range(count):
            for each in kinds:
                self._skip(_BYTE if each in _TRUTHS else each, depth + 1)

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        count = head >> 4
        return head & 15, self._bounded(self.read_varint() if count == _LONG_LIST else count)

    def _map(self) -> tuple[tuple[int, ...], int]:
        count = self._bounded(self.read_varint())
        if not count:
            return (), 0
        head = self._byte()
        return (head >> 4, head & 15), count

    def _bounded(self, count: int) -> int:
        # Each takes a byte at least.
        if count > self._end - self.at:
            raise Malformed("a list is longer than the bytes that are left")
        return count

    def _count(self, depth: int) -> None:
        self._values -= 1
        if self._values < 0:
            raise Beyond("describes itself by more values than files of its length do")
        if depth > _MAX_DEPTH:
            raise Malformed("it is nested too deeply")

    def _byte(self) -> int:
        at = self.at
        if at >= self._end:
            raise Malformed("it is cut short")
        self.at = at + 1
        return self._content[at]

    def _pass(self, length: int) -> None:
        if length > self._end - self.at:
            raise Malformed("it is cut short")
        self.at += length


def _alone(kind: int, count: int) -> tuple[tuple[int, ...], int]:
    return (kind,), count


def _width(kind: int) -> int:
    if kind not in _WIDTHS:
        raise Malformed("a field has a type that there is none of")
    return _WIDTHS[kind]
