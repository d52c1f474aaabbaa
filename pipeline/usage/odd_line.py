"""Reads a line that is not written as this gateway writes it: an event all the same, or not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from pipeline.usage.schema import COUNTS, FIELDS, SCHEMA_VERSION, TEXTS

# Far more than an event of a gateway can take.
LONGEST: Final = 1024 * 1024
# Times of no gateway's days would make partitions that nobody expects.
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)

_ISO: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_LARGEST: Final = 2**63 - 1

Event = dict[str, Any]


def reader() -> Callable[[bytes | None], Event]:
    """Return ``read_line`` in a form that goes to other machines as it is."""

    def read(line: bytes | None) -> Event:
        return read_line(bytes(line or b""))

    return read


def read_line(line: bytes) -> Event:
    """Return the columns of an event, and ``reason`` and ``detail`` where the line is none."""
    try:
        return _read_event(_read_object(line))
    except _Malformed as exc:
        return {"reason": exc.reason, "detail": exc.detail}


class _Malformed(Exception):
    def __init__(self, reason: str, detail: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


def _read_object(line: bytes) -> dict[str, object]:
    if len(line) > LONGEST:
        raise _Malformed("too_long", f"{len(line)} bytes")
    try:
        text = line.decode()
    except UnicodeDecodeError as exc:
        raise _Malformed("not_utf8") from exc
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse)
    except (ValueError, RecursionError) as exc:
        raise _Malformed("not_json") from exc
    if not isinstance(found, dict):
        raise _Malformed("not_json")
    return found


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        # Readers differ in which of them they believe.
        raise _Malformed("repeated_field")
    return found


def _refuse(_: str) -> None:
    raise ValueError("not a number of JSON's")


def _read_event(fields: Mapping[str, object]) -> Event:
    version, identity = fields.get("schema_version"), fields.get("id")
    if version is None:
        raise _Malformed("missing_schema_version")
    if _is_count(version) and version != SCHEMA_VERSION:
        raise _Malformed("unknown_schema_version", str(version))
    if identity in (None, ""):
        raise _Malformed("missing_id")
    at = _time(fields.get("at"))
    if at is None:
        raise _Malformed("missing_time")
    unsound = [name for name in sorted(FIELDS & fields.keys()) if not _is_sound(name, fields[name])]
    if unsound:
        raise _Malformed("bad_type", ", ".join(unsound))
    return {
        **{name: _text(fields.get(name) or "") for name in TEXTS},
        **{name: fields.get(name) or 0 for name in COUNTS},
        "version": fields.get("version"),
        "schema_version": version,
        "locations": [_text(part) for part in _list(fields.get("locations"))],
        "at": at,
        "day": at.date(),
        "expires_at": _time(fields.get("expires_at")),
        "more": {_text(name): _json(fields[name]) for name in fields.keys() - FIELDS},
    }


def _is_sound(name: str, value: object) -> bool:
    if value is None:
        return True
    if name in TEXTS:
        return isinstance(value, str)
    if name in ("at", "expires_at"):
        return _time(value) is not None
    if name == "locations":
        return isinstance(value, list) and all(isinstance(part, str) for part in value)
    return _is_count(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST


def _time(value: object) -> datetime | None:
    if not isinstance(value, str) or not _ISO.fullmatch(value):
        return None
    try:
        time = datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return time if EARLIEST <= time < LATEST else None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    """Return a text that a column can hold: without halves of surrogate pairs."""
    return str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _json(value: object) -> str:
    return _text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
