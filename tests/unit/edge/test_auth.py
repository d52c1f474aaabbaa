from __future__ import annotations

import hashlib

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from gateway.edge.auth import ANONYMOUS, token_sha256
from gateway.errors import Unauthenticated
from tests.cases import each_case


def headers(*values: str) -> CIMultiDictProxy[str]:
    return CIMultiDictProxy(CIMultiDict(("Authorization", value) for value in values))


@each_case("value", ["Bearer abc", "bearer abc", "BEARER abc", "Bearer   abc", "Bearer abc "])
def test_the_scheme_is_case_insensitive_and_only_the_hash_is_returned(value: str) -> None:
    assert token_sha256(headers(value)) == hashlib.sha256(b"abc").digest()


def test_a_token_of_any_printable_characters_is_hashed_as_it_is() -> None:
    assert token_sha256(headers("Bearer a!b~c/==")) == hashlib.sha256(b"a!b~c/==").digest()


def test_a_missing_header_says_how_to_send_a_token() -> None:
    with pytest.raises(Unauthenticated, match="Authorization: Bearer"):
        token_sha256(headers())


@each_case(
    "value",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic abc",
        "Token abc",
        "Bearer a b",
        "Bearer abc more",
        "Bearer,abc",
        "abc",
        "Bearer\tabc",
        "Bearer \u00e9",
        "Bearerabc",
    ],
)
def test_a_malformed_header_is_refused_without_repeating_it(value: str) -> None:
    with pytest.raises(Unauthenticated) as caught:
        token_sha256(headers(value))
    assert "abc" not in caught.value.message


def test_two_headers_are_refused() -> None:
    with pytest.raises(Unauthenticated):
        token_sha256(headers("Bearer abc", "Bearer abc"))


def test_no_token_hashes_to_the_anonymous_caller() -> None:
    with pytest.raises(Unauthenticated):
        token_sha256(headers("Bearer "))
    assert hashlib.sha256(b"").digest() == ANONYMOUS
