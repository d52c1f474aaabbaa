from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import InvalidArgument
from gateway.services.snapshot.timestamp import parse_timestamp
from tests.cases import each_case

_ZONES = st.timedeltas(timedelta(hours=-14), timedelta(hours=14)).map(
    lambda span: timezone(timedelta(minutes=span // timedelta(minutes=1)))
)


@each_case(
    ("text", "expected"),
    [
        ("2022-01-01T00:00:00Z", datetime(2022, 1, 1, tzinfo=UTC)),
        ("2022-01-01T02:00:00+02:00", datetime(2022, 1, 1, tzinfo=UTC)),
        ("2022-01-01T00:00:00.5Z", datetime(2022, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)),
        ("2022-01-01T00:00:00.123456789Z", datetime(2022, 1, 1, 0, 0, 0, 123_456, tzinfo=UTC)),
        ("2022-01-01 00:00:00", datetime(2022, 1, 1, tzinfo=UTC)),
    ],
)
def test_iso_8601_is_read_as_utc(text, expected):
    assert parse_timestamp("timestamp", text) == expected


@each_case(
    "text",
    [
        "",
        "yesterday",
        "2022-01-01",
        "2022-13-45",
        "2022-13-01T00:00:00Z",
        "2022-01-01T25:00:00Z",
        "2022-01-01T00:00:00Z ",
        "2022-01-01T00:00:00+99:00",
        "0001-01-01T00:00:00+10:00",
        "1640995200000",
        "1650000000",
        "٢٠٢٢-01-01T00:00:00Z",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(InvalidArgument, match="is not a timestamp in ISO 8601"):
        parse_timestamp("timestamp", text)


def test_the_parameter_is_named():
    with pytest.raises(InvalidArgument, match=r"^startingTimestamp 'soon' is not"):
        parse_timestamp("startingTimestamp", "soon")


@pytest.mark.parametrize("text", ["2022-01-01T00:00:00 00:00", "2022-01-01T00:00:00.5 02:00"])
def test_a_plus_that_became_a_blank_is_answered_with_how_to_write_it(text):
    with pytest.raises(InvalidArgument, match=r"write [+] as %2B"):
        parse_timestamp("timestamp", text)


def test_other_faults_have_no_such_hint():
    for text in ("2022-01-01 00:00", "2022-01-01"):
        with pytest.raises(InvalidArgument) as caught:
            parse_timestamp("timestamp", text)
        assert "%2B" not in caught.value.message


def test_a_long_text_is_not_echoed_whole():
    with pytest.raises(InvalidArgument) as caught:
        parse_timestamp("timestamp", "x" * 10_000)

    assert len(caught.value.message) < 200


@settings(deadline=None)
@given(st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1), timezones=_ZONES))  # noqa: DTZ001 -- hypothesis wants bounds without a zone
def test_what_python_writes_is_read_back(moment):
    assert parse_timestamp("timestamp", moment.isoformat()) == moment


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_a_time_or_a_clear_error(text):
    with contextlib.suppress(InvalidArgument):
        assert parse_timestamp("timestamp", text).tzinfo is UTC
