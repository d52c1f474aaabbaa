"""Z85, the base85 alphabet that the Delta log spells bytes in."""

from __future__ import annotations

from typing import Final

_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_BYTES: Final = 4
_DIGITS: Final = 5


def to_z85(data: bytes) -> str:
    """Return the text of the bytes, filled up with zeros to whole groups of four."""
    filled = data + bytes(-len(data) % _BYTES)
    groups = (int.from_bytes(filled[at : at + _BYTES]) for at in range(0, len(filled), _BYTES))
    return "".join(map(_to_digits, groups))


def _to_digits(number: int) -> str:
    return "".join(_ALPHABET[number // 85**place % 85] for place in reversed(range(_DIGITS)))
