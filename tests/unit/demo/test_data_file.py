from __future__ import annotations

import io
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl

from gateway.demo.data_file import to_data_file


def test_the_content_is_the_frame():
    frame = pl.DataFrame({"a": [1, None], "b": [{"x": "y"}, None]})

    assert pl.read_parquet(io.BytesIO(to_data_file(frame).content)).equals(frame)


def test_the_same_frame_is_the_same_bytes():
    frame = pl.DataFrame({"a": list(range(100))})

    assert to_data_file(frame) == to_data_file(frame)


def test_statistics_count_and_bound_the_rows():
    frame = pl.DataFrame(
        {
            "n": [3, 1, None],
            "t": ["b", "a", "ü"],
            "d": [date(2024, 1, 2), date(2024, 1, 1), None],
            "at": [datetime(2024, 1, 1, tzinfo=UTC)] * 3,
            "m": pl.Series([Decimal("1.5"), Decimal("2.5"), None], dtype=pl.Decimal(5, 2)),
            "long": pl.Series([Decimal("1.5")] * 3, dtype=pl.Decimal(38, 2)),
            "flag": [True, None, None],
            "list": [[1], None, None],
            "nested": [{"a": 1}] * 3,
        }
    )

    stats = json.loads(to_data_file(frame).stats or "")

    assert stats == {
        "numRecords": 3,
        "minValues": {"n": 1, "t": "a", "d": "2024-01-01", "at": "2024-01-01T00:00:00.000Z", "m": 1.5},
        "maxValues": {"n": 3, "t": "ü", "d": "2024-01-02", "at": "2024-01-01T00:00:00.000Z", "m": 2.5},
        "nullCount": {"n": 1, "t": 0, "d": 1, "at": 0, "m": 1, "long": 0, "flag": 2, "list": 2},
    }


def test_what_json_has_no_number_for_is_left_out():
    stats = to_data_file(pl.DataFrame({"x": [math.inf, 1.0]})).stats or ""

    assert json.loads(stats)["maxValues"] == {}
    assert "Infinity" not in stats


def test_statistics_can_be_left_out():
    assert to_data_file(pl.DataFrame({"a": [1]}), stats=False).stats is None


def test_no_rows_have_statistics_without_bounds():
    stats = json.loads(to_data_file(pl.DataFrame(schema={"a": pl.Int64})).stats or "")

    assert stats == {"numRecords": 0, "minValues": {}, "maxValues": {}, "nullCount": {"a": 0}}
