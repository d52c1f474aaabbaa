"""Runs in the clients' environment: one spelling of a row, for all the types that libraries read it into."""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped, no-any-return"

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

# Above this, a number that was read as a float is not the integer any more.
_MAX_EXACT = 2**53


def spell_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return rows as JSON, in one order: a table has none, and neither do its columns."""
    named = ({name: plain(value) for name, value in zip(columns, row, strict=True)} for row in rows)
    return sorted(json.dumps(row, sort_keys=True) for row in named)


def plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | Sequence) and not isinstance(value, str | bytes | bytearray):
        return [plain(item) for item in value]
    return _plain_scalar(_unwrapped(value))


def _unwrapped(value: Any) -> Any:
    if value is None or value is pd.NaT:
        return None
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else pd.Timestamp(value)
    return value.item() if isinstance(value, np.generic) else value


def _plain_scalar(value: Any) -> Any:
    match value:
        case float():
            return _plain_float(value)
        case Decimal():
            return format(value.normalize(), "f")
        case date():
            return _plain_date(value)
        case bytes() | bytearray():
            return bytes(value).hex()
        case _:
            return value


def _plain_date(value: date) -> str:
    if not isinstance(value, datetime):
        return value.isoformat()
    utc = (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
    return utc.isoformat(timespec="microseconds")


def _plain_float(value: float) -> Any:
    # A column of integers with nulls is one of floats in pandas, and null is not a number there.
    if math.isnan(value):
        return None
    if value.is_integer() and abs(value) < _MAX_EXACT:
        return int(value)
    return value
