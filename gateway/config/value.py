"""Values as people write them: spans of time, sizes, moments, and plain scalars of unknown type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final

_SPAN: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*(ms|s|m|h|d|)")
_SPAN_UNITS: Final = {"ms": 0.001, "s": 1, "": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST: Final = timedelta(days=3660)
_SIZE: Final = re.compile(r"([0-9]{1,18})\s*(B|KiB|MiB|GiB|TiB|)")
_SIZE_UNITS: Final = {"B": 1, "": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}
_LARGEST: Final = 2**63 - 1
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT: Final = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
_TOKEN_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")
_STORAGE_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_BOOLEANS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


class Plain(str):
    """A scalar without quotes: text, until it is known that a number or a boolean was meant."""

    __slots__ = ()


def typed(value: object, *, levels: int = 32) -> object:
    """Return the value with its plain scalars as the numbers and booleans that they spell."""
    if not levels:
        raise ValueError("must not be nested this deep")
    if isinstance(value, Mapping):
        return {str(key): typed(item, levels=levels - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [typed(item, levels=levels - 1) for item in value]
    return _scalar(value) if isinstance(value, Plain) else value


def parse_span(value: object) -> timedelta:
    """Return the span of ``30s``, ``5m``, ``1h`` or a number of seconds."""
    if isinstance(value, timedelta):
        return value
    match = _SPAN.fullmatch(_text(value))
    if match:
        seconds = float(match[1]) * _SPAN_UNITS[match[2]]
        if 0 < seconds <= _LONGEST.total_seconds():
            return timedelta(seconds=seconds)
    raise ValueError("must be a span of time such as 30s, 5m or 1h, at most ten years")


def parse_age(value: object) -> timedelta:
    """Return how old something may be: a span of at most a day, or 0."""
    if value == timedelta(0) or _text(value) in {"0", "0s"}:
        return timedelta(0)
    age = parse_span(value)
    if age > timedelta(days=1):
        raise ValueError("must be 0, or a span of time of at most a day, such as 30s or 5m")
    return age


def parse_size(value: object) -> int:
    """Return the bytes of ``64MiB``, ``16KiB`` or a number of bytes."""
    match = _SIZE.fullmatch(_text(value))
    if match:
        size = int(match[1]) * _SIZE_UNITS[match[2]]
        if 0 < size <= _LARGEST:
            return size
    raise ValueError("must be a size such as 64MiB or 16KiB")


def parse_room(value: object) -> int:
    """Return how much may be kept: a size, or 0."""
    if _text(value) == "0":
        return 0
    try:
        return parse_size(value)
    except ValueError:
        raise ValueError("must be 0, or a size such as 64MiB or 16KiB") from None


def parse_moment(value: object) -> datetime:
    """Return the moment of ``2030-01-31T12:00:00Z``, or of a date: its first instant in UTC."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    text = _text(value)
    try:
        moment = _midnight(text) if len(text) <= len("2030-01-31") else datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError(
        "must be a date such as 2030-01-31, or a time with its zone such as 2030-01-31T12:00:00Z"
    )


def parse_token_hash(text: str) -> str:
    if not _TOKEN_HASH.fullmatch(text):
        raise ValueError("must be sha256: and 64 lower-case hexadecimal digits; `sluice token hash` makes it")
    return text


def parse_storage_name(text: str) -> str:
    if not _STORAGE_NAME.fullmatch(text):
        raise ValueError(
            "must be 1 to 63 lower-case letters, digits and hyphens, not beginning with a hyphen"
        )
    return text


def parse_share_names(value: object) -> object:
    if value == "*" or (isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)):
        return value
    raise ValueError('must be a list of names of shares, or "*" for all of them')


def parse_targets(value: object) -> object:
    if isinstance(value, str) or (isinstance(value, list | tuple) and all(isinstance(i, str) for i in value)):
        return value
    raise ValueError("must be an address such as dns:///catalog:9400, or a list of addresses")


def parse_format_version(value: object) -> int:
    if _text(value) != "1":
        raise ValueError("must be 1, the only version of this format")
    return 1


def _midnight(text: str) -> datetime:
    day = date.fromisoformat(text)
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _scalar(text: Plain) -> object:
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else str(text)
