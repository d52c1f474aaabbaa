from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.value import (
    Plain,
    parse_age,
    parse_format_version,
    parse_moment,
    parse_room,
    parse_share_names,
    parse_size,
    parse_span,
    parse_storage_name,
    parse_targets,
    parse_token_hash,
    typed,
)
from tests.cases import each_case

ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.from_regex(r"[0-9.]{0,40} ?(ms|s|m|h|d|B|KiB|GiB|TiB)?", fullmatch=True)
    | st.lists(st.integers(), max_size=2)
)


@each_case(
    ("written", "span"),
    [
        ("250ms", timedelta(milliseconds=250)),
        ("30s", timedelta(seconds=30)),
        ("1.5 m", timedelta(seconds=90)),
        (" 2h ", timedelta(hours=2)),
        ("7d", timedelta(days=7)),
        ("45", timedelta(seconds=45)),
        (45, timedelta(seconds=45)),
        (0.5, timedelta(seconds=0.5)),
        (timedelta(seconds=3), timedelta(seconds=3)),
    ],
)
def test_a_span_is_a_number_with_a_unit_or_seconds(written, span):
    assert parse_span(written) == span


@each_case(
    "written",
    [
        "",
        "0s",
        "-1s",
        "5 weeks",
        "1e3s",
        "99999999d",
        "s",
        "\u0661s",
        True,
        None,
        float("inf"),
        float("nan"),
        [],
    ],
)
def test_what_is_no_span_is_refused(written):
    with pytest.raises(ValueError, match="a span of time such as"):
        parse_span(written)


@each_case(
    ("written", "age"),
    [
        (0, timedelta(0)),
        ("0", timedelta(0)),
        ("0s", timedelta(0)),
        (timedelta(0), timedelta(0)),
        ("30s", timedelta(seconds=30)),
        (5, timedelta(seconds=5)),
        ("24h", timedelta(days=1)),
    ],
)
def test_an_age_is_nothing_or_a_span(written, age):
    assert parse_age(written) == age


@each_case("written", ["", "-1s", "25h", "never", None, False, [], float("nan")])
def test_what_is_no_age_is_refused(written):
    with pytest.raises(ValueError, match="a span of time"):
        parse_age(written)


@given(st.integers(min_value=1, max_value=10**8), st.sampled_from(["ms", "s"]))
def test_a_span_keeps_its_length(number, unit):
    assert parse_span(f"{number}{unit}") == timedelta(
        **{"ms": {"milliseconds": number}, "s": {"seconds": number}}[unit]
    )


@each_case(
    ("written", "size"),
    [
        ("1B", 1),
        ("16KiB", 16384),
        ("64 MiB", 67108864),
        ("2GiB", 2**31),
        ("1TiB", 2**40),
        ("12", 12),
        (12, 12),
    ],
)
def test_a_size_is_a_number_with_a_unit_or_bytes(written, size):
    assert parse_size(written) == size


@each_case("written", ["", "0", 0, -1, "1.5MiB", "64MB", "9999999999TiB", False, None, {}])
def test_what_is_no_size_is_refused(written):
    with pytest.raises(ValueError, match="a size such as"):
        parse_size(written)


@each_case(("written", "room"), [("0", 0), (0, 0), (" 0 ", 0), ("16KiB", 16384), (12, 12)])
def test_room_is_nothing_or_a_size(written, room):
    assert parse_room(written) == room


@each_case("written", ["", "-1", -1, "none", False, None, {}])
def test_what_is_no_room_is_refused(written):
    with pytest.raises(ValueError, match="must be 0, or a size"):
        parse_room(written)


@each_case(
    ("written", "moment"),
    [
        ("2030-01-31", datetime(2030, 1, 31, tzinfo=UTC)),
        ("2030-01-31T12:30:00Z", datetime(2030, 1, 31, 12, 30, tzinfo=UTC)),
        ("2030-01-31 12:30:00+02:00", datetime(2030, 1, 31, 10, 30, tzinfo=UTC)),
        (
            datetime(2030, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
            datetime(2030, 1, 1, tzinfo=UTC),
        ),
    ],
)
def test_a_moment_is_a_date_or_a_time_with_its_zone(written, moment):
    assert parse_moment(written) == moment


@each_case(
    "written",
    [
        "tomorrow",
        "2030-02-30",
        "2030-01-31T12:30:00",
        "0001-01-01T00:00:00+05:00",
        "",
        1893456000,
        None,
        datetime(2030, 1, 1, tzinfo=UTC).replace(tzinfo=None),
    ],
)
def test_what_is_no_moment_is_refused(written):
    with pytest.raises(ValueError, match="a date such as 2030-01-31"):
        parse_moment(written)


@pytest.mark.parametrize("parse", [parse_span, parse_size, parse_moment, parse_format_version])
@given(value=ANYTHING)
def test_no_value_breaks_a_parser(parse, value):
    with suppress(ValueError):
        parse(value)


def test_plain_scalars_become_what_they_spell_and_quoted_ones_stay_text():
    value = {
        "a": Plain("true"),
        "b": Plain("12"),
        "c": Plain("1.5"),
        "d": Plain("t-1"),
        "e": "12",
        "f": [Plain("-3"), {"g": Plain("False")}],
        "h": Plain("1e3"),
        "i": None,
    }
    assert typed(value) == {
        "a": True,
        "b": 12,
        "c": 1.5,
        "d": "t-1",
        "e": "12",
        "f": [-3, {"g": False}],
        "h": 1000.0,
        "i": None,
    }


def test_what_is_nested_too_deep_is_refused():
    value: object = "x"
    for _ in range(100):
        value = [value]
    with pytest.raises(ValueError, match="nested"):
        typed(value)


@each_case("text", ["sha256:" + "a" * 63, "a" * 64, "SHA256:" + "a" * 64, "sha256:" + "A" * 64, ""])
def test_a_token_hash_has_a_prefix_and_64_digits(text):
    assert parse_token_hash("sha256:" + "0f" * 32) == "sha256:" + "0f" * 32
    with pytest.raises(ValueError, match="64 lower-case hexadecimal digits"):
        parse_token_hash(text)


@each_case("text", ["", "-a", "A", "a_b", "a" * 64, "a\n"])
def test_a_storage_name_can_stand_in_a_url(text):
    assert parse_storage_name("lake-1") == "lake-1"
    with pytest.raises(ValueError, match="lower-case letters"):
        parse_storage_name(text)


@each_case("value", ["sales", {"a": "b"}, ["a", 1], 3, None])
def test_shares_are_a_list_or_a_star(value):
    assert parse_share_names("*") == "*"
    assert parse_share_names(["a"]) == ["a"]
    with pytest.raises(ValueError, match="for all of them"):
        parse_share_names(value)


@each_case("value", [{"a": "b"}, [1], 3, None])
def test_targets_are_one_address_or_a_list(value):
    assert parse_targets("dns:///a:1") == "dns:///a:1"
    assert parse_targets(["a:1"]) == ["a:1"]
    with pytest.raises(ValueError, match="list of addresses"):
        parse_targets(value)
