"""What the values of a parquet column stand for, read and spelled anew."""

from __future__ import annotations

from typing import Final

from gateway.services.snapshot.log.thrift import Malformed, Shape, Struct
from gateway.services.snapshot.log.thrift_writer import I8, Spelled, spell

_UNITS: Final[Shape] = {1: None, 2: None, 3: None}
_EMPTY: Final = spell({})
# By the number of the alternative, as the format has them: those that say nothing beside their name.
_PLAIN: Final = (1, 2, 3, 4, 6, 11, 12, 13, 14, 15)
_DECIMAL: Final = 5
_TIMES: Final = (7, 8)
_INTEGER: Final = 10

# What is read of it; others, as a place on Earth, are read as the bytes that they are.
LOGICAL_TYPE: Final[Shape] = {
    **dict.fromkeys(_PLAIN),
    _DECIMAL: {1: None, 2: None},
    **{number: {1: None, 2: _UNITS} for number in _TIMES},
    _INTEGER: {1: None, 2: None},
}


def spell_logical_type(found: Struct | None) -> Spelled | None:
    """Return the same for who reads on; None where there is nothing to say."""
    for number in LOGICAL_TYPE if found is not None else ():
        chosen = found.struct(number) if found is not None else None
        if chosen is not None:
            return spell({number: _spell(number, chosen)})
    return None


def _spell(number: int, chosen: Struct) -> Spelled:
    if number == _DECIMAL:
        return spell({1: chosen.integer(1), 2: chosen.integer(2)})
    if number == _INTEGER:
        return spell({1: I8(_byte(chosen.integer(1))), 2: bool(chosen.integer(2))})
    if number in _TIMES:
        return spell({1: bool(chosen.integer(1)), 2: _spell_unit(chosen.struct(2))})
    return _EMPTY


def _spell_unit(unit: Struct | None) -> Spelled:
    for number in _UNITS if unit is not None else ():
        if unit is not None and unit.has(number):
            return spell({number: _EMPTY})
    raise Malformed("a time has no unit")


def _byte(value: int) -> int:
    if not 0 <= value < 128:  # noqa: PLR2004 (what a byte holds)
        raise Malformed("a number is wider than any")
    return value
