"""JSON as all our answers have it: compact, on one line, in ASCII."""

from __future__ import annotations

from json import JSONEncoder
from typing import Any, Final

# Some clients take the other line separators of Unicode for the end of a line.
_ENCODER: Final = JSONEncoder(ensure_ascii=True, separators=(",", ":"))


def encode_json(value: Any) -> bytes:
    return _ENCODER.encode(value).encode()
