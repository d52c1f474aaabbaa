"""Data files: parquet bytes with the statistics that the log keeps of them."""

from __future__ import annotations

import io
import json
import math
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import polars as pl

# Digits that survive as a JSON number in every reader.
_EXACT_DIGITS: Final = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """The content of a file, ready to be placed in a table, once or often."""

    content: bytes
    stats: str | None


def to_data_file(frame: pl.DataFrame, *, stats: bool = True) -> DataFile:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="snappy", statistics=False)
    return DataFile(content=buffer.getvalue(), stats=_stats(frame) if stats else None)


def _stats(frame: pl.DataFrame) -> str:
    ordered = frame.select(column.name for column in frame if _has_order(column.dtype))
    counted = frame.select(column.name for column in frame if not isinstance(column.dtype, pl.Struct))
    statistics = {
        "numRecords": frame.height,
        "minValues": _row(ordered.select(pl.all().min())),
        "maxValues": _row(ordered.select(pl.all().max())),
        "nullCount": _row(counted.null_count()),
    }
    return json.dumps(statistics, separators=(",", ":"), ensure_ascii=False)


def _has_order(dtype: pl.DataType) -> bool:
    if isinstance(dtype, pl.Decimal):
        return dtype.precision <= _EXACT_DIGITS
    return dtype.is_numeric() or isinstance(dtype, pl.String | pl.Date | pl.Datetime)


def _row(frame: pl.DataFrame) -> dict[str, Any]:
    if not frame.width:
        return {}
    values = {name: _json_value(value) for name, value in frame.row(0, named=True).items()}
    return {name: value for name, value in values.items() if value is not None}


def _json_value(value: object) -> object:
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="milliseconds")
        return f"{text}Z" if value.tzinfo else text
    return value.isoformat() if isinstance(value, date) else value
