from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.services.snapshot.log.beyond import Beyond
from gateway.services.snapshot.log.parsed import partition_values_of, stats_of
from tests.cases import each_case
from tests.hypothesis_profiles import examples

_AT = datetime(2024, 2, 29, 1, 2, 3, 456_000, UTC)
_LOCAL = _AT.replace(tzinfo=None)
_EARLY = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
_UTC = pl.Datetime("us", "UTC")
_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def stats(value, dtype):
    parsed = pl.Series([{"minValues": {"c": value}}], dtype=pl.Struct({"minValues": pl.Struct({"c": dtype})}))
    return stats_of(parsed)[0]


@each_case(
    ("value", "dtype", "text"),
    [
        (5, pl.Int64, "5"),
        (-(2**63), pl.Int64, "-9223372036854775808"),
        (7, pl.Int8, "7"),
        (1.5, pl.Float64, "1.5"),
        (-0.0, pl.Float64, "-0.0"),
        (0.1, pl.Float32, "0.1"),
        (True, pl.Boolean, "true"),
        (Decimal("12.30"), pl.Decimal(10, 2), "12.30"),
        (Decimal("-0.000000000000000001"), pl.Decimal(38, 18), "-0.000000000000000001"),
        (date(2024, 2, 29), pl.Date, '"2024-02-29"'),
        (date(1, 1, 1), pl.Date, '"0001-01-01"'),
        (_AT, _UTC, '"2024-02-29T01:02:03.456Z"'),
        (_AT.replace(microsecond=1), _UTC, '"2024-02-29T01:02:03.000001Z"'),
        (
            _EARLY,
            _UTC,
            '"1969-12-31T23:59:59.999999Z"',
        ),
        (_LOCAL, pl.Datetime("us"), '"2024-02-29T01:02:03.456"'),
        # How INT96 is read, which is in UTC.
        (_LOCAL, pl.Datetime("ns"), '"2024-02-29T01:02:03.456Z"'),
        ('a"\\\n', pl.String, '"a\\"\\\\\\n"'),
        ("ü", pl.String, '"ü"'),
        ("}", pl.String, '"}"'),
    ],
)
def test_a_value_is_written_as_writers_do(value, dtype, text):
    assert stats(value, dtype) == '{"minValues":{"c":' + text + "}}"


@each_case(
    ("value", "dtype"),
    [(None, pl.Int64), (float("nan"), pl.Float64), (float("inf"), pl.Float64), (float("-inf"), pl.Float32)],
)
def test_a_value_that_json_does_not_have_is_left_out(value, dtype):
    assert stats(value, dtype) == '{"minValues":{}}'


def test_a_time_that_nanoseconds_cannot_reach_is_left_out():
    times = pl.Series("c", [2**63 - 1, 0, None]).cast(pl.Datetime("ns"))
    parsed = pl.DataFrame({"maxValues": times.to_frame().to_struct()}).to_struct("p")

    assert stats_of(parsed).to_list() == [
        '{"maxValues":{}}',
        '{"maxValues":{"c":"1970-01-01T00:00:00.000Z"}}',
        '{"maxValues":{}}',
    ]


def test_a_partition_value_that_nanoseconds_cannot_reach_is_not_made_up():
    times = pl.Series("c", [0, 2**63 - 1, None]).cast(pl.Datetime("ns"))

    assert partition_values_of(times.head(1).to_frame().to_struct("p")).to_list() == [
        {"c": "1970-01-01T00:00:00.000Z"}
    ]
    with pytest.raises(Beyond, match="a time before 1677 or after 2262 for a partition value"):
        partition_values_of(times.to_frame().to_struct("p"))


@pytest.mark.parametrize("dtype", [pl.Binary, pl.List(pl.Int64), pl.Struct({"metadata": pl.Binary})])
def test_a_type_that_has_no_text_is_left_out(dtype):
    assert stats(None, dtype) is None


def test_members_keep_their_order_and_their_physical_names():
    parsed = pl.Series(
        [
            {
                "numRecords": 2,
                "maxValues": {"col-b96": {"col-04e": 1, 'co"l': None}, "z": "x"},
                "nullCount": {"col-b96": {"col-04e": 0, 'co"l': 2}, "z": 0},
                "tightBounds": False,
            }
        ]
    )

    assert stats_of(parsed)[0] == (
        '{"numRecords":2,"maxValues":{"col-b96":{"col-04e":1},"z":"x"},'
        '"nullCount":{"col-b96":{"col-04e":0,"co\\"l":2},"z":0},"tightBounds":false}'
    )


def test_what_is_null_as_a_whole_has_no_statistics():
    parsed = pl.Series([None, {"numRecords": None}, {"numRecords": 1}])

    assert stats_of(parsed).to_list() == [None, None, '{"numRecords":1}']


@settings(max_examples=examples(0.5))
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "n": st.none() | st.integers(-(2**63), 2**63 - 1),
                "s": st.none() | _TEXT,
                "b": st.none() | st.booleans(),
            }
        ),
        min_size=1,
    )
)
def test_what_is_written_says_what_was_parsed(rows):
    dtype = pl.Struct({"n": pl.Int64, "s": pl.String, "b": pl.Boolean})

    texts = stats_of(pl.Series(rows, dtype=dtype)).to_list()

    expected = [{name: value for name, value in row.items() if value is not None} for row in rows]
    assert [json.loads(text or "{}") for text in texts] == expected


def test_partition_values_are_written_as_writers_do():
    parsed = pl.DataFrame(
        {
            "i": pl.Series([1, None], dtype=pl.Int32),
            "s": ["a b", ""],
            "d": [date(2024, 2, 29), None],
            "t": pl.Series([_AT, None], dtype=_UTC),
            "n": pl.Series([Decimal("1.50"), None], dtype=pl.Decimal(4, 2)),
            "b": [True, None],
        }
    ).to_struct("p")

    assert partition_values_of(parsed).to_list() == [
        {"i": "1", "s": "a b", "d": "2024-02-29", "t": "2024-02-29T01:02:03.456Z", "n": "1.50", "b": "true"},
        {"i": None, "s": "", "d": None, "t": None, "n": None, "b": None},
    ]


def test_what_is_null_on_the_way_to_a_value_is_left_out():
    inner = pl.Struct({"b": pl.Int64, "c": pl.Struct({"d": pl.String})})
    dtype = pl.Struct({"n": pl.Int64, "a": inner})
    rows = [
        None,
        {"n": 1, "a": None},
        {"n": None, "a": {"b": 1, "c": None}},
        {"n": 2, "a": {"c": {"d": "x"}}},
    ]

    texts = stats_of(pl.Series(rows, dtype=dtype)).to_list()

    assert texts == [None, '{"n":1}', '{"a":{"b":1}}', '{"n":2,"a":{"c":{"d":"x"}}}']


def test_members_are_not_looked_up_one_by_one(monkeypatch):
    # Each takes longer the more there are: a thousand columns would take seconds.
    def field(self: object, *names: str) -> pl.Expr:
        raise AssertionError(names)

    monkeypatch.setattr(type(pl.col("a").struct), "field", field)
    parsed = pl.Series([{"minValues": {"a": 1, "b": 2}}])

    assert stats_of(parsed)[0] == '{"minValues":{"a":1,"b":2}}'
    assert partition_values_of(pl.Series([{"p": 1}])).to_list() == [{"p": "1"}]
