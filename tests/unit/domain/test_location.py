from __future__ import annotations

import string

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gateway.domain.location import Location, parse_location
from gateway.errors import InvalidArgument
from tests.cases import each_case
from tests.problems import assert_none, not_raised

ROOTS = [
    "",
    "file://",
    "file://localhost",
    "file:",
    "s3://bucket",
    "s3a://bucket",
    "gs://my_bucket.example.com",
    "abfss://container@account.dfs.core.windows.net",
    "wasbs://container@account.blob.core.windows.net",
]
roots = st.sampled_from(ROOTS)
segments = st.text(
    st.characters(
        min_codepoint=0x20, exclude_characters="/\\%\x7f\u2028\u2029", exclude_categories=("Cs", "Cc")
    ),
    min_size=1,
    max_size=20,
).filter(lambda text: text.strip() and not text.endswith("."))
paths = st.lists(segments, min_size=1, max_size=5).map("/".join)


@st.composite
def locations(draw) -> Location:
    return parse_location(f"{draw(roots)}/{draw(paths)}")


@each_case(
    ("text", "identity"),
    [
        ("/data/table", ("file", "", "data/table")),
        ("file:///data/table", ("file", "", "data/table")),
        ("file:/data/table", ("file", "", "data/table")),
        ("file://localhost/data/table", ("file", "", "data/table")),
        ("s3://bucket/data/table", ("s3", "bucket", "data/table")),
        ("s3://bucket", ("s3", "bucket", "")),
        ("gs://my_bucket.example.com/t", ("gs", "my_bucket.example.com", "t")),
        (
            "abfss://c@acct.dfs.core.windows.net/t",
            ("abfss", "c@acct.dfs.core.windows.net", "t"),
        ),
        ("s3://bucket/date=2024-01-01/a b+c&d?e#f$g*h", ("s3", "bucket", "date=2024-01-01/a b+c&d?e#f$g*h")),
        ("s3://bucket/50%25 off/100%", ("s3", "bucket", "50%25 off/100%")),
        ("s3://bucket/.hidden/v1.2/…", ("s3", "bucket", ".hidden/v1.2/…")),
    ],
)
def test_a_location_is_parsed_into_scheme_authority_and_path(text, identity):
    location = parse_location(text)
    assert location.identity == identity
    assert location.text == str(location) == text


@each_case(
    ("one", "other"),
    [
        ("s3://bucket/t", "s3a://bucket/t"),
        ("s3://bucket/t", "s3n://bucket/t"),
        ("s3://bucket/t", "S3A://bucket/t"),
        ("s3://bucket/t", "s3://bucket/t/"),
        ("s3://bucket", "s3://bucket/"),
        ("abfss://c@acct.dfs.core.windows.net/t", "abfs://c@acct.dfs.core.windows.net/t"),
        ("abfss://c@acct.dfs.core.windows.net/t", "wasbs://c@acct.blob.core.windows.net/t"),
        ("abfss://c@acct.dfs.core.windows.net/t", "WASB://C@ACCT.BLOB.core.windows.net/t"),
        ("/data/t", "file:///data/t"),
        ("/data/t", "file:/data/t"),
        ("/data/t", "FILE://LOCALHOST/data/t/"),
        ("/", "file:///"),
    ],
)
def test_two_spellings_of_a_place_are_equal(one, other):
    first, second = parse_location(one), parse_location(other)
    assert first == second
    assert hash(first) == hash(second)
    assert first.covers(second)
    assert second.covers(first)


@each_case(
    ("one", "other"),
    [
        ("s3://bucket/t", "s3://bucket/T"),
        ("s3://bucket/t", "gs://bucket/t"),
        ("s3://bucket/t", "s3://bucket2/t"),
        ("/bucket/t", "s3://bucket/t"),
        ("abfss://a@x.dfs.core.windows.net/t", "abfss://b@x.dfs.core.windows.net/t"),
        ("abfss://c@x.dfs.core.windows.net/t", "abfss://c@x.dfs.example.com/t"),
        ("s3://x.blob.y/t", "s3://x.dfs.y/t"),
        ("s3://bucket/a%20b", "s3://bucket/a b"),
        ("s3://bucket/e\u0301", "s3://bucket/\u00e9"),
    ],
)
def test_different_places_are_not_equal(one, other):
    first, second = parse_location(one), parse_location(other)
    assert first != second
    assert not first.covers(second)
    assert not second.covers(first)


def test_a_location_is_not_equal_to_its_text():
    assert parse_location("s3://bucket/t") != "s3://bucket/t"


# Paths that another reader could take elsewhere.
AMBIGUOUS = [
    *("..", ".", "...", "a/..", "a/../b", "./a", "a/.", "a/./b", "a./b", "a.../b", "a/b.", "a/b../"),
    *("/a", "a//b", "a//", "//", "a/ /b", "a/\u3000/b", " "),
    *("%2e%2e", "%2E%2e/b", "a/%2e/b", ".%2e", "%2e.", "a%2Fb", "a%2fb", "a%5cb", "a%5Cb"),
    *("%252e%252e", "a%252Fb", "a%25252fb", "a%255cb"),
    *("%c0%ae%c0%ae", "a%C0%AFb", "a%25c0%25afb", "a%c1%9cb"),
    *("a\\b", "..\\b"),
    *("a%00b", "a%0ab", "a%0Db", "a%1fb", "a%7fb", "a%2500b"),
]


# AT-18
# With the root `file:`, three slashes are the root of the file system.
@each_case("root", [root for root in ROOTS if root != "file:"])
def test_a_path_that_another_reader_could_take_elsewhere_is_refused(root):
    outcomes = [not_raised(InvalidArgument, "", parse_location, f"{root}/{path}") for path in AMBIGUOUS]
    assert_none(filter(None, outcomes))


CONTROL_CHARACTERS = "\0\a\t\n\r\x1f\x7f\x80\x85\x9f\u2028\u2029\ud800"


# AT-04
@each_case("place", ["s3://bucket/a{}b", "s3://buc{}ket/t", "s3{}://bucket/t", "{}/t", "/t{}"])
def test_a_control_character_or_lone_surrogate_is_refused_and_named(place):
    outcomes = [
        not_raised(InvalidArgument, repr(character), parse_location, place.format(character))
        for character in CONTROL_CHARACTERS
    ]
    assert_none(filter(None, outcomes))


@each_case(
    "text",
    [
        "",
        "table",
        "./table",
        "../table",
        "C:/table",
        "s3:/bucket/t",
        "s3:bucket/t",
        "s3://",
        "s3:///t",
        "s3://buc ket/t",
        "s3://user@bucket/t",
        "s3://user:secret@bucket/t",
        "s3://bucket:9000/t",
        "s3://-bucket/t",
        "s3://bucket./t",
        "s3://buc..ket/t",
        "s3://../t",
        "s3://%62ucket/t",
        "gs://bucket?x/t",
        "abfss://acct.dfs.core.windows.net/t",
        "abfss://@acct.dfs.core.windows.net/t",
        "s3://Bucket/t",
        "gs://BUCKET/t",
        "abfss://c@/t",
        "abfss://c@acct.dfs.core.windows.net./t",
        "abfss://c@acct..dfs.core.windows.net/t",
        "abfss://a@b@acct.dfs.core.windows.net/t",
        "abfss://a.b@acct.dfs.core.windows.net/t",
        "file://host/t",
        "file://",
        "file://localhost",
        "file:",
        "file:t",
        "//host/t",
        "file:////t",
        "http://bucket/t",
        "https://bucket.s3.amazonaws.com/t",
        "hdfs://name/t",
        "://bucket/t",
    ],
)
def test_what_is_no_location_of_ours_is_refused(text):
    with pytest.raises(InvalidArgument):
        parse_location(text)


def test_an_unknown_scheme_is_answered_with_the_known_ones():
    with pytest.raises(InvalidArgument, match=r"'ftp' is not supported; use one of file, s3, s3a"):
        parse_location("ftp://bucket/t")


@settings(deadline=None)
@given(roots, paths)
def test_the_text_of_a_location_parses_to_that_location(root, path):
    location = parse_location(f"{root}/{path}")
    assert location.text == f"{root}/{path}"
    again = parse_location(location.text)
    assert (again, again.text) == (location, location.text)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_refused_or_round_trips(text):
    try:
        location = parse_location(text)
    except InvalidArgument:
        return
    again = parse_location(location.text)
    assert (again, again.text) == (location, location.text)


# Texts that are nearly locations find more than texts that are not.
nearly = st.lists(
    st.sampled_from([*"/.%\\ @:2efFaA", "..", "//", "s3://b", "abfss://c@h", "file:", "%2e", "%25", "\x85"]),
    max_size=12,
).map("".join)


@settings(deadline=None)
@given(nearly)
def test_whatever_is_accepted_has_no_segment_that_is_empty_or_dotted(text):
    try:
        location = parse_location(text)
    except InvalidArgument:
        return
    assert all(part.strip() and not part.endswith(".") for part in location.path.split("/") if location.path)
    assert location.text in {text, text[:-1]}
    again = parse_location(location.text)
    assert (again, again.text) == (location, location.text)


@settings(deadline=None)
@given(locations(), paths)
def test_a_location_covers_itself_and_what_lies_below(location, path):
    inner = parse_location(f"{location.text}/{path}")
    assert location.covers(location)
    assert location.covers(inner)
    assert location.below(inner) == path
    assert location.below(location) == ""
    assert not inner.covers(location)


# AT-10
@settings(deadline=None)
@given(locations(), st.text(string.ascii_letters + string.digits + "-_=2", min_size=1, max_size=10))
def test_a_location_never_covers_a_sibling_whose_name_begins_alike(location, suffix):
    sibling = parse_location(f"{location.text}{suffix}")
    for other in (sibling, parse_location(f"{sibling.text}/inner")):
        assert not location.covers(other)
        with pytest.raises(InvalidArgument):
            location.below(other)
    assert not sibling.covers(location)


@settings(deadline=None)
@given(locations(), locations())
def test_covering_is_having_the_same_segments_first(one, other):
    assume(not one.is_root)
    mine, theirs = one.path.split("/"), other.path.split("/")
    same_store = one.identity[:2] == other.identity[:2]
    assert one.covers(other) == (same_store and theirs[: len(mine)] == mine)


@pytest.mark.parametrize("text", ["/", "s3://bucket", "s3://bucket/"])
def test_a_root_covers_everything_in_its_store(text):
    root = parse_location(text)
    assert root.is_root
    inner = parse_location(f"{text.rstrip('/')}/a/b")
    assert root.covers(inner)
    assert root.below(inner) == "a/b"


def test_the_text_of_a_root_is_a_location_too():
    for text in ("/", "file:///", "file:/", "s3://bucket/", "abfss://c@acct.dfs.core.windows.net/"):
        location = parse_location(text)
        assert parse_location(location.text) == location


@settings(deadline=None)
@given(locations())
def test_child_lies_directly_below_and_leads_back(location):
    child = location.child("inner")

    assert child.path.rpartition("/") == (location.path, "/" if location.path else "", "inner")
    assert location.below(child) == "inner"
    assert child.parent == location
    assert child.parent.text == location.text or location.is_root
    assert child == parse_location(child.text)


@settings(deadline=None)
@given(locations())
def test_parents_lead_to_the_root_and_their_texts_are_locations(location):
    steps = 0
    while not location.is_root:
        above = location.parent
        assert above == parse_location(above.text)
        assert above.covers(location)
        assert above.root == location.root
        location, steps = above, steps + 1
        assert steps < 1000
    assert location.root == location.parent == location
    assert location.root == parse_location(location.root.text)


@each_case("name", ["", "a/b", "/", "..", " ", "a%2Fb", "a\\b"])
def test_child_is_one_directory(name):
    with pytest.raises(InvalidArgument):
        parse_location("s3://bucket/a").child(name)
