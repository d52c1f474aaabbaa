from __future__ import annotations

import re
from urllib.parse import quote, unquote

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.demo.partition import directory_of, log_path
from gateway.errors import GatewayError, Unsupported
from gateway.services.snapshot.log.path import encode_path, encode_paths
from tests.cases import each_case

_CANONICAL = re.compile(r"(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})+")
_SEGMENTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="/\\" + "".join(map(chr, [*range(32), 127]))),
    min_size=1,
    max_size=20,
).filter(lambda segment: segment not in {".", ".."})
# A colon in the first segment would end a scheme: no writer leaves one there.
_KEYS = st.builds(
    lambda first, rest: "/".join([first.replace(":", "_"), *rest]), _SEGMENTS, st.lists(_SEGMENTS, max_size=3)
)


@each_case(
    ("path", "encoded"),
    [
        ("part-0.parquet", "part-0.parquet"),
        ("a~b_c/d-e.f", "a~b_c/d-e.f"),
        ("day=2024-01-01/part-0.parquet", "day%3D2024-01-01/part-0.parquet"),
        ("p=a%20b/f", "p%3Da%20b/f"),
        ("p=a b/f", "p%3Da%20b/f"),
        ("p=50%2525/f", "p%3D50%2525/f"),
        ("p=a%252Fb/f", "p%3Da%252Fb/f"),
        ("p=1+1/f", "p%3D1%2B1/f"),
        ("p=ünï/f", "p%3D%C3%BCn%C3%AF/f"),
        ("p=%c3%bc/f", "p%3D%C3%BC/f"),
        ("p=%61/f", "p%3Da/f"),
        ("p=a:b/f", "p%3Da%3Ab/f"),
        ("p=..=/f", "p%3D..%3D/f"),
        ("p=../f", "p%3D../f"),
        ("...", "..."),
    ],
)
def test_a_path_has_one_spelling(path, encoded):
    assert encode_path(path) == encoded
    assert encode_paths(pl.Series([path])).to_list() == [encoded]


@each_case(
    "path",
    [
        "",
        "/etc/passwd",
        "/",
        "../secret",
        "a/../b",
        "a/..",
        "./a",
        "a/./b",
        "a//b",
        "a/",
        "%2e%2e/secret",
        "%2E%2e/secret",
        "a/%2e/b",
        "a%2Fb",
        "a%2fb",
        "a%5Cb",
        "a\\b",
        "a%00b",
        "a\x00b",
        "a%0Ab",
        "a\nb",
        "a%7Fb",
        "a%",
        "a%2",
        "a%zz",
        "a%FF",
        "a?b",
        "a#b",
        "s3://bucket/key",
        "file:/etc/passwd",
        "S3A://bucket/key",
        "mailto:x",
    ],
)
def test_a_path_that_leaves_the_table_or_means_two_things_is_refused(path):
    with pytest.raises(Unsupported):
        encode_path(path)
    assert encode_paths(pl.Series([path, "good"])).to_list() == [None, "good"]


@settings(deadline=None)
@given(_KEYS)
def test_what_spark_writes_for_a_key_names_that_key(key):
    encoded = encode_path(log_path(key))

    assert unquote(encoded, errors="strict") == key
    assert _CANONICAL.fullmatch(encoded)
    assert quote(key, safe="/") == encoded


@settings(deadline=None)
@given(
    st.dictionaries(
        _SEGMENTS, st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
    )
)
def test_every_partition_directory_can_be_served(values):
    key = f"{directory_of(values)}/part-0.parquet".lstrip("/")

    assert unquote(encode_path(log_path(key)), errors="strict") == key


@settings(deadline=None)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
        | _KEYS
        | st.from_regex(r"[a-z=%0-9A-F/.:]{1,20}", fullmatch=True)
    )
)
def test_columns_are_encoded_like_single_paths(paths):
    expected = [find(path) for path in paths]

    assert encode_paths(pl.Series(paths, dtype=pl.String)).to_list() == expected
    # Long columns are encoded in another way.
    assert encode_paths(pl.Series(paths * 300, dtype=pl.String)).to_list() == expected * 300


@settings(deadline=None)
@given(st.lists(st.from_regex(r"[a=%20./]{1,8}", fullmatch=True), min_size=1, max_size=2))
def test_paths_such_as_most_tables_have_are_encoded_like_any(paths):
    expected = [find(path) for path in paths]

    assert encode_paths(pl.Series(paths)).to_list() == expected
    assert encode_paths(pl.Series(paths * 300)).to_list() == expected * 300


def test_what_is_no_path_has_no_spelling():
    assert encode_paths(pl.Series(["a=b", None])).to_list() == ["a%3Db", None]


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_what_is_served_stays_below_the_table(path):
    encoded = find(path)

    if encoded is not None:
        assert _CANONICAL.fullmatch(encoded)
        assert all(segment not in {"", ".", ".."} for segment in unquote(encoded).split("/"))


def find(path: str) -> str | None:
    try:
        return encode_path(path)
    except GatewayError:
        return None
