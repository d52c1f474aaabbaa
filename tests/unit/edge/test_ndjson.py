from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.ndjson import line, splice
from gateway.errors import Internal
from gateway.v1.presign_pb2 import SignResponse
from gateway.v1.snapshot_pb2 import HOLE_EXPIRATION, HOLE_URL, FilePage
from tests.fakes.services import fake_page

SAFE = st.text("abcdefghijklmnopqrstuvwxyzABC0123456789-_.~%/", max_size=30)


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
    files = [json.loads(text)["file"] for text in splice(page, signed(2)).splitlines()]
    assert [file["url"] for file in files] == [
        "https://h/a.parquet?k=v&sig=s0",
        "https://h/d=1/b.parquet?k=v&sig=s1",
    ]
    assert [file["expirationTimestamp"] for file in files] == [1234, 1234]
    assert [file["id"] for file in files] == ["id-a.parquet", "id-d=1/b.parquet"]


def test_holes_may_stand_at_both_ends_and_at_one_place() -> None:
    page = FilePage(
        lines=b"-", holes=[0, 0, 1], hole_kinds=bytes([HOLE_URL, HOLE_EXPIRATION, HOLE_URL]), paths=b"a\nb"
    )
    assert splice(page, signed(2)) == b"https://h/a?k=v&sig=s01234-https://h/b?k=v&sig=s1"


def test_a_page_without_holes_is_as_it_is() -> None:
    assert splice(FilePage(lines=b"{}\n"), SignResponse()) == b"{}\n"


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_signature_too_few_or_too_many_is_an_error_not_a_wrong_url(count: int) -> None:
    page = fake_page(["a", "b"], str)
    with pytest.raises(Internal):
        splice(page, signed(count))


def test_a_path_too_few_is_an_error() -> None:
    page = FilePage(lines=b"", holes=[0, 0], hole_kinds=bytes([HOLE_URL, HOLE_URL]), paths=b"a")
    with pytest.raises(Internal):
        splice(page, signed(2))


def test_an_unknown_hole_is_an_error() -> None:
    with pytest.raises(Internal, match="unknown kind 9"):
        splice(FilePage(lines=b"", holes=[0], hole_kinds=b"\x09"), SignResponse())


def test_kinds_that_do_not_match_the_holes_are_an_error() -> None:
    page = FilePage(lines=b"", holes=[0, 0], hole_kinds=bytes([HOLE_EXPIRATION]))
    with pytest.raises(ValueError, match="zip"):
        splice(page, SignResponse())


@given(
    pieces=st.lists(
        st.tuples(st.binary(max_size=20), st.sampled_from([HOLE_URL, HOLE_EXPIRATION])), max_size=30
    ),
    tail=st.binary(max_size=20),
    data=st.data(),
)
def test_splicing_puts_each_value_where_its_hole_is(
    pieces: list[tuple[bytes, int]], tail: bytes, data: st.DataObject
) -> None:
    lines, holes, expected = b"", [], b""
    urls = sum(kind == HOLE_URL for _, kind in pieces)
    paths = data.draw(st.lists(SAFE, min_size=urls, max_size=urls))
    signatures = data.draw(st.lists(SAFE, min_size=urls, max_size=urls))
    waiting = iter(zip(paths, signatures, strict=True))
    for piece, kind in pieces:
        lines += piece
        holes.append(len(lines))
        expected += piece
        if kind == HOLE_URL:
            path, signature = next(waiting)
            expected += f"https://h/{path}?q={signature}".encode()
        else:
            expected += b"77"
    page = FilePage(
        lines=lines + tail,
        holes=holes,
        hole_kinds=bytes(kind for _, kind in pieces),
        paths="\n".join(paths).encode(),
    )
    answer = SignResponse(
        origin="https://h/", query="q=", signatures="\n".join(signatures).encode(), expires_at_ms=77
    )
    assert splice(page, answer) == expected + tail


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
def test_a_line_is_one_line_of_ascii_to_every_reader(value: dict[str, object]) -> None:
    text = line(value)
    assert text.isascii()
    assert len(text.decode().splitlines()) == 1
    assert json.loads(text) == value
