from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.byte_range import ByteRange, parse_range
from tests.cases import each_case


@each_case(
    ("header", "expected"),
    [
        ("bytes=0-0", (0, 1)),
        ("bytes=2-5", (2, 6)),
        ("bytes=2-", (2, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-30", (0, 10)),
        ("bytes=5-99999999", (5, 10)),
        ("bytes=9-9", (9, 10)),
        (f"bytes=5-{2**64}", (5, 10)),
        (f"bytes=-{2**64}", (0, 10)),
        ("Bytes= 2-5 ", (2, 6)),
    ],
)
def test_single_range_is_cut_to_the_file(header, expected):
    start, end = expected

    assert parse_range(header, 10) == ByteRange(start=start, end=end)


@each_case("header", ["bytes=10-", "bytes=10-12", "bytes=999-1000", "bytes=-0", f"bytes={2**64}-"])
def test_range_outside_of_the_file_is_empty(header):
    part = parse_range(header, 10)

    assert part is not None
    assert part.start >= part.end


def test_every_range_of_an_empty_file_is_empty():
    for header in ("bytes=0-", "bytes=0-0", "bytes=-5"):
        part = parse_range(header, 0)
        assert part is not None
        assert part.start >= part.end


@each_case(
    "header",
    [
        "",
        "bytes",
        "bytes=",
        "bytes=-",
        "bytes=a-b",
        "bytes=5-2",
        "bytes=0-1,3-4",
        "bytes=0-1,",
        "bytes=+1-2",
        "bytes=1-2-3",
        "bytes 1-2",
        "items=0-1",
        "bytes=\u0660-\u0661",
        "bytes=0x1-0x2",
        f"bytes=0-{'9' * 5000}",
    ],
)
def test_what_is_not_a_single_range_asks_for_the_whole(header):
    assert parse_range(header, 10) is None


@given(header=st.text(max_size=20) | st.from_regex(r"bytes=\d{0,20}-\d{0,20}"), size=st.integers(0, 2**63))
def test_whatever_is_asked_for_stays_within_the_file(header, size):
    part = parse_range(header, size)

    assert part is None or (part.start >= 0 and part.end <= size)
