"""Spans of time and sizes, as people write them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_SPAN_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZE: Final = re.compile(r"(\d+)\s*(B|KiB|MiB|GiB)")
_SIZE_UNITS: Final = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}


def parse_span(value: object) -> timedelta:
    """Return the span of ``30s``, ``5m``, ``1h`` or a number of seconds."""
    if isinstance(value, timedelta):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return timedelta(seconds=value)
    if isinstance(value, str) and (match := _SPAN.fullmatch(value.strip())):
        return timedelta(seconds=float(match[1]) * _SPAN_UNITS[match[2]])
    raise ValueError("a span of time such as 30s, 5m or 1h")


def parse_size(value: object) -> int:
    """Return the bytes of ``64MiB``, ``16KiB`` or a number of bytes."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        return int(match[1]) * _SIZE_UNITS[match[2]]
    raise ValueError("a size such as 64MiB or 16KiB")
