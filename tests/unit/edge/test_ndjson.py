from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.ndjson import earliest, line, splice
from gateway.errors import Internal
from gateway.v1.presign_pb2 import SignResponse
from gateway.v1.snapshot_pb2 import HOLE_EXPIRATION, HOLE_URL, FilePage, PathGroup
from tests.cases import each_case
from tests.fakes.services import fake_page


def signed(count: int, **changes: object) -> SignResponse:
    values = {
        "origin": "https://h/",
        "query": "k=v&sig=",
        "signatures": b"\n".join(b"s%d" % number for number in range(count)),
        "expires_at_ms": 1234,
    }
    return SignResponse(**(values | changes))  # type: ignore[arg-type]  # the test names the fields


def test_a_url_is_origin_path_query_and_signature() -> None:
    page = fake_page(["a.parquet", "d=1/b.parquet"], lambda path: f"id-{path}")
    files = [json.loads(text)["file"] for text in splice(page, [signed(2)]).splitlines()]
    assert [file["url"] for file in files] == [
        "https://h/a.parquet?k=v&sig=s0",
        "https://h/d=1/b.parquet?k=v&sig=s1",
    ]
    assert [file["expirationTimestamp"] for file in files] == [1234, 1234]
    assert [file["id"] for file in files] == ["id-a.parquet", "id-d=1/b.parquet"]


def test_holes_may_stand_at_both_ends_and_at_one_place() -> None:
    page = FilePage(
        lines=b"-",
        holes=[0, 0, 1],
        hole_kinds=bytes([HOLE_URL, HOLE_EXPIRATION, HOLE_URL]),
        groups=[PathGroup(paths=b"a\nb")],
    )
    assert splice(page, [signed(2)]) == b"https://h/a?k=v&sig=s01234-https://h/b?k=v&sig=s1"


def test_a_page_without_holes_is_as_it_is() -> None:
    assert splice(FilePage(lines=b"{}\n"), []) == b"{}\n"


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_signature_too_few_or_too_many_is_an_error_not_a_wrong_url(count: int) -> None:
    page = fake_page(["a", "b"], str)
    with pytest.raises(Internal):
        splice(page, [signed(count)])


def test_a_path_too_few_is_an_error() -> None:
    groups = [PathGroup(paths=b"a")]
    page = FilePage(lines=b"", holes=[0, 0], hole_kinds=bytes([HOLE_URL, HOLE_URL]), groups=groups)
    with pytest.raises(Internal):
        splice(page, [signed(2)])


def test_an_unknown_hole_is_an_error() -> None:
    with pytest.raises(Internal, match="unknown kind 9"):
        splice(FilePage(lines=b"", holes=[0], hole_kinds=b"\x09"), [])


def test_an_expiration_of_nothing_is_an_error() -> None:
    with pytest.raises(Internal, match="nothing that expires"):
        splice(FilePage(lines=b"", holes=[0], hole_kinds=bytes([HOLE_EXPIRATION])), [])


def grouped(order: bytes, *paths: bytes) -> FilePage:
    return FilePage(
        lines=b"",
        holes=[0] * len(order),
        hole_kinds=bytes([HOLE_URL]) * len(order),
        groups=[PathGroup(location=number, paths=each) for number, each in enumerate(paths)],
        hole_groups=order,
    )


def test_each_url_is_the_next_of_its_group() -> None:
    page = grouped(b"\x01\x00\x01", b"a", b"b\nc")
    answers = [signed(1, origin="x:/"), signed(2, origin="y:/", query="")]
    assert splice(page, answers) == b"y:/b?s0" + b"x:/a?k=v&sig=s0" + b"y:/c?s1"


def test_what_a_line_says_of_its_expiration_holds_for_every_group() -> None:
    page = grouped(b"\x00\x01", b"a", b"b")
    page.holes.append(0)
    page.hole_kinds += bytes([HOLE_EXPIRATION])
    answers = [signed(1, expires_at_ms=99), signed(1, expires_at_ms=77)]
    assert splice(page, answers).endswith(b"77")
    assert earliest(answers) == 77


@each_case(
    ("order", "paths"),
    [
        (b"\x00", (b"a", b"b")),
        (b"\x00\x01", (b"a",)),
        (b"\x00\x02", (b"a", b"b")),
        (b"\x01\x01", (b"a", b"b")),
    ],
)
def test_groups_that_do_not_match_their_holes_are_an_error(order: bytes, paths: tuple[bytes, ...]) -> None:
    with pytest.raises(Internal):
        splice(grouped(order, *paths), [signed(1) for _ in paths])


def test_a_group_that_was_not_signed_is_an_error() -> None:
    with pytest.raises(Internal):
        splice(grouped(b"\x00\x01", b"a", b"b"), [signed(1)])


def test_kinds_that_do_not_match_the_holes_are_an_error() -> None:
    groups = [PathGroup(paths=b"a")]
    page = FilePage(lines=b"", holes=[0, 0], hole_kinds=bytes([HOLE_URL]), groups=groups)
    with pytest.raises(Internal, match="holes of"):
        splice(page, [SignResponse()])


@given(
    pieces=st.lists(st.tuples(st.binary(max_size=20), st.sampled_from([0, 1, 2, None])), max_size=30),
    tail=st.binary(max_size=20),
)
def test_splicing_puts_each_value_where_its_hole_is(
    pieces: list[tuple[bytes, int | None]], tail: bytes
) -> None:
    """The number of a piece is the group of the URL behind it; None is an expiration."""
    names = {group: number for number, group in enumerate(sorted({g for _, g in pieces if g is not None}))}
    paths: list[list[bytes]] = [[] for _ in names]
    lines, holes, kinds, expected = b"", [], [], b""
    for number, (piece, group) in enumerate(pieces):
        lines += piece
        holes.append(len(lines))
        kinds.append(HOLE_EXPIRATION if group is None else HOLE_URL)
        expected += piece
        if group is not None:
            own = paths[names[group]]
            expected += b"h%d:/p%d?q=s%d" % (names[group], number, len(own))
            own.append(b"p%d" % number)
        else:
            expected += b"77"
    page = FilePage(
        lines=lines + tail,
        holes=holes,
        hole_kinds=bytes(kinds),
        groups=[PathGroup(paths=b"\n".join(each)) for each in paths],
        hole_groups=bytes(names[group] for _, group in pieces if group is not None),
    )
    answers = [
        signed(len(each), origin=f"h{number}:/", query="q=", expires_at_ms=77)
        for number, each in enumerate(paths)
    ]
    if not answers and holes:
        with pytest.raises(Internal):
            splice(page, answers)
    else:
        assert splice(page, answers) == expected + tail


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
def test_a_line_is_one_line_of_ascii_to_every_reader(value: dict[str, object]) -> None:
    text = line(value)
    assert text.isascii()
    assert len(text.decode().splitlines()) == 1
    assert json.loads(text) == value
