from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.domain.file_path import Paths, decode_path, encode_path, parse_paths
from gateway.errors import InvalidArgument
from tests.cases import each_case

segments = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\"), min_size=1
).filter(lambda segment: segment not in {".", ".."})
file_paths = st.lists(segments, min_size=1, max_size=4).map("/".join)


@given(path=file_paths)
@example(path="date=2021-04-28/part-0 +%#?é\u2028.parquet")
def test_what_is_encoded_decodes_to_the_same_path(path):
    encoded = encode_path(path)

    assert encoded.isascii()
    assert decode_path(encoded) == path
    assert parse_paths(encoded.encode()).split() == [encoded.encode()]


@each_case(
    ("path", "encoded"),
    [
        ("part-0.parquet", "part-0.parquet"),
        ("date=2021-04-28/a b.parquet", "date%3D2021-04-28/a%20b.parquet"),
        ("a%20b", "a%2520b"),
        ("a+b&c'd", "a%2Bb%26c%27d"),
        ("é", "%C3%A9"),
        ("...", "..."),
        ("~x", "~x"),
    ],
)
def test_path_has_one_spelling_that_is_signed(path, encoded):
    assert encode_path(path) == encoded


@each_case("spelling", ["a=b", "a%3Db", "a%3db", "%61=b", "a%3D%62"])
def test_spellings_of_one_path_decode_to_it(spelling):
    assert decode_path(spelling) == "a=b"


@each_case(
    "spelling",
    [
        "",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "a/..",
        "../a",
        "a/../b",
        "a/./b",
        "%2e%2e/a",
        "a/%2E%2E/b",
        ".%2e/a",
        "a/%2e",
        "a%2Fb",
        "a%2fb",
        "%2Fa",
        "a%5Cb",
        "..%5Ca",
        "a\\b",
        "a%00b",
        "a%0Ab",
        "a%1F",
        "a%7F",
        "a\x7fb",
        "a\tb",
        "a\0b",
        "a%",
        "a%2",
        "a%zz",
        "a%c3",
        "a%FF",
        "%C0%AE%C0%AE/a",
        "%ED%A0%80",
        "\udc80",
    ],
)
def test_path_that_is_ambiguous_or_leaves_the_directory_is_refused(spelling):
    with pytest.raises(InvalidArgument):
        decode_path(spelling)
    with pytest.raises(InvalidArgument):
        parse_paths(f"good.parquet\n{spelling}\nalso-good.parquet".encode(errors="surrogatepass"))


@each_case("spelling", ["a=b", "a%3db", "%61", "a%7Eb", "a+b", "a b", "a%2Db"])
def test_page_is_refused_for_a_path_in_another_spelling(spelling):
    with pytest.raises(InvalidArgument, match="is not spelled"):
        parse_paths(f"good.parquet\n{spelling}".encode())


def test_page_is_refused_for_a_path_that_is_not_ascii():
    with pytest.raises(InvalidArgument, match="must be percent-encoded ASCII"):
        parse_paths("good.parquet\né".encode())


def test_page_without_a_path_has_none():
    none = parse_paths(b"")

    assert (len(none), none.split(), none) == (0, [], Paths.of([]))


def test_page_knows_how_many_paths_it_has_and_whether_they_are_a_segment():
    paths = parse_paths(b"a\nb", is_segment=True)

    assert (len(paths), paths.split(), paths.is_segment) == (2, [b"a", b"b"], True)


@given(
    text=st.text(alphabet="a./%2eEFfCc35\\=\n0b", min_size=1, max_size=12) | st.text(min_size=1, max_size=6)
)
def test_page_is_accepted_exactly_if_each_path_is_canonical(text):
    def canonical(path):
        try:
            return encode_path(decode_path(path)) == path
        except InvalidArgument:
            return False

    if all(canonical(path) for path in text.split("\n")):
        assert parse_paths(text.encode()).split() == text.encode().split(b"\n")
    else:
        with pytest.raises(InvalidArgument):
            parse_paths(text.encode())


def test_decoding_happens_once():
    assert decode_path("%252e%252e/a") == "%2e%2e/a"
