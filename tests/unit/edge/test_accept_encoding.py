from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.accept_encoding import Accepted, Coding, parse
from tests.cases import each_case

AS_IT_IS = Accepted()
GZIP, ZSTD, IDENTITY = Coding.GZIP, Coding.ZSTD, Coding.IDENTITY


@each_case(
    ("header", "best"),
    [
        ("gzip", GZIP),
        ("gzip, deflate", GZIP),
        ("GZip", GZIP),
        ("x-gzip", GZIP),
        ("zstd", ZSTD),
        ("gzip, deflate, br, zstd", ZSTD),
        ("zstd;q=0.5, gzip;q=0.8", GZIP),
        ("zstd;q=0.1, gzip;q=0.2", GZIP),
        ("zstd;q=0.001, gzip;q=0", ZSTD),
        ("gzip;q=0.5, identity", IDENTITY),
        ("gzip;q=0.1, identity;q=0.2", IDENTITY),
        ("identity;q=0.5, gzip;q=0.6", GZIP),
        ("identity;q=0.5, gzip;q=0.5", GZIP),
        ("identity", IDENTITY),
        ("br", IDENTITY),
        ("deflate", IDENTITY),
        ("br, deflate", IDENTITY),
        ("gzip;q=0", IDENTITY),
        ("", IDENTITY),
        (" , ,", IDENTITY),
        ("*", GZIP),
        ("*;q=0.1", GZIP),
        ("gzip;q=0, *", IDENTITY),
        ("identity, *;q=0.5", IDENTITY),
        ("zstd, *;q=0.5", ZSTD),
        ("\tgzip ;\tq=1.000 , zstd; Q=0.999", GZIP),
    ],
)
def test_what_a_client_likes_best_of_what_there_is(header: str, best: Coding) -> None:
    assert parse([header]) == Accepted(best=best)


def test_a_client_that_says_nothing_gets_answers_as_they_are() -> None:
    assert parse([]) == AS_IT_IS


def test_several_headers_are_one() -> None:
    assert parse(["gzip;q=0.5", "zstd"]).best is ZSTD


@each_case(
    "header", ["gzip, identity;q=0", "identity;q=0, gzip", "gzip, *;q=0", "gzip;q=0.1, identity;q=0.000"]
)
def test_a_client_may_refuse_answers_as_they_are(header: str) -> None:
    assert parse([header]) == Accepted(best=GZIP, plain=False)


@pytest.mark.parametrize("header", ["gzip, *;q=0, identity", "gzip, identity;q=0.001, *;q=0"])
def test_what_is_named_is_not_meant_by_the_star(header: str) -> None:
    assert parse([header]).plain


@each_case("header", ["*;q=0", "identity;q=0", "br, identity;q=0", "br, *;q=0"])
def test_a_client_that_accepts_nothing_of_ours_gets_answers_as_they_are(header: str) -> None:
    assert parse([header]) == AS_IT_IS


@each_case(
    "item",
    ["gzip;q=2", "gzip;q=-1", "gzip;q=0.1234", "gzip;q=", "gzip;level=1", "gz ip", "gzip;q=1;q=0", "é"],
)
def test_what_is_malformed_is_left_out(item: str) -> None:
    assert parse([item]) == AS_IT_IS
    assert parse([f"{item}, zstd"]).best is ZSTD


@given(st.text(alphabet='gzipstdent*;q=01. ,\t"é-', max_size=60))
def test_any_header_can_be_read_and_gives_what_a_client_named(text: str) -> None:
    best = parse([text]).best
    assert best is IDENTITY or best.value in text.lower() or "*" in text
