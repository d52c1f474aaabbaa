from __future__ import annotations

import string
from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import parse_qs, urlsplit

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.credential import AwsTempCredentials
from gateway.domain.file_path import encode_path
from tests.cases import each_case
from tests.hypothesis_profiles import examples
from tests.unit.vendors.sdk import TOKEN, sdk_client, sdk_urls
from vendors.sigv4 import Presigning, shared_query, sign_urls, signing_key

NOON = datetime(2026, 11, 16, 12, 34, 56, tzinfo=UTC)
HOUR = timedelta(hours=1)
KEY_ID, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

# AT-51
AWKWARD = (
    "part-00000-8b0086f2.c000.snappy.parquet",
    "date=2021-04-28/part 0.parquet",
    "date%3D2021-04-28/part%200.parquet",
    "50%/100%25/%/%zz/%41bc",
    "a+b/a b/a%2Bb/a%20b",
    "#1/a#b?c=d&e=f;g",
    "?",
    "=",
    "//double//slashes///",
    "/leading",
    "trailing/",
    "./../a/./b/../c",
    "...",
    string.punctuation,
    string.printable,
    "naïve-日本/e\u0301/é/💧/\u202e\ufeff",
    "~tilde_under-score.dot",
    "\x00\x01\x7f\x80",
    "x" * 1000,
)


def terms(*, region: str = "eu-central-1", token: str = "", host: str, life: timedelta = HOUR) -> Presigning:
    keys = AwsTempCredentials(access_key_id=KEY_ID, secret_access_key=SECRET, session_token=token)
    return Presigning(host=host, region=region, keys=keys, signed_at=NOON, life=life)


def our_urls(batch: Presigning, directory: str, keys: list[str]) -> list[str]:
    paths = [encode_path(key) for key in keys]
    signed = sign_urls(batch, directory, [path.encode() for path in paths]).decode().split("\n")
    query = shared_query(batch)
    pairs = zip(paths, signed, strict=True)
    return [f"https://{batch.host}{directory}{path}?{query}{signature}" for path, signature in pairs]


@each_case("token", ["", "short+/=", TOKEN], ids=["keys", "token", "long token"])
@each_case("style", ["virtual", "path"])
@each_case(
    ("region", "suffix"),
    [
        ("us-east-1", "amazonaws.com"),
        ("eu-central-1", "amazonaws.com"),
        ("cn-north-1", "amazonaws.com.cn"),
        ("us-gov-west-1", "amazonaws.com"),
    ],
)
def test_urls_are_those_of_the_sdk_for_awkward_keys(region, suffix, style, token):
    client = sdk_client(
        region=region, access_key_id=KEY_ID, secret=SECRET, token=token, addressing_style=style
    )
    base = f"s3.{region}.{suffix}"
    host, directory = (f"lake.{base}", "/") if style == "virtual" else (base, "/lake/")

    ours = our_urls(terms(region=region, token=token, host=host), directory, list(AWKWARD))

    assert ours == sdk_urls(client, "lake", AWKWARD, signed_at=NOON, life=HOUR)


letters = st.one_of(
    st.sampled_from(string.ascii_letters + string.digits),
    st.sampled_from(" %+=#?&;:@/\\.~-_'\"<>{}[]()|^`!$*,"),
    st.characters(exclude_categories=["Cs"]),
)
names = st.one_of(
    st.text(letters, min_size=1, max_size=40),
    st.text(letters, min_size=1, max_size=10).map(encode_path),
    st.sampled_from(AWKWARD),
)


@settings(max_examples=examples(3))
@given(
    directory=st.one_of(st.just(""), st.text(letters, min_size=1, max_size=20)),
    keys=st.lists(names, min_size=4, max_size=24),
    token=st.sampled_from(["", TOKEN]),
    life=st.integers(1, 604_800),
)
def test_urls_are_those_of_the_sdk(directory, keys, token, life):
    """A few thousand keys; the directory is hashed apart from what lies below it."""
    client = sdk_client(region="eu-central-1", access_key_id=KEY_ID, secret=SECRET, token=token)
    span = timedelta(seconds=life)
    above = f"{directory}/" if directory else ""

    ours = our_urls(
        terms(token=token, host="lake.s3.eu-central-1.amazonaws.com", life=span),
        f"/{encode_path(above)}",
        keys,
    )

    assert ours == sdk_urls(client, "lake", [f"{above}{key}" for key in keys], signed_at=NOON, life=span)


def test_session_token_stands_where_the_sdk_puts_it():
    names = [pair.partition("=")[0] for pair in shared_query(terms(token="t", host="h")).split("&")]

    assert names[4:] == ["X-Amz-SignedHeaders", "X-Amz-Security-Token", "X-Amz-Signature"]


def test_moment_of_another_time_zone_is_the_same_moment():
    elsewhere = NOON.astimezone(timezone(timedelta(hours=9)))
    keys = AwsTempCredentials(access_key_id=KEY_ID, secret_access_key=SECRET, session_token="")
    batch = Presigning(host="h", region="eu-central-1", keys=keys, signed_at=elsewhere, life=HOUR)

    assert sign_urls(batch, "/", [b"a"]) == sign_urls(terms(host="h"), "/", [b"a"])
    assert shared_query(batch) == shared_query(terms(host="h"))


def test_no_paths_give_no_signatures():
    assert sign_urls(terms(host="h"), "/", []) == b""


def test_query_tells_since_when_and_how_long():
    query = parse_qs(urlsplit(f"?{shared_query(terms(host='h'))}x").query)

    assert query["X-Amz-Date"] == ["20261116T123456Z"]
    assert query["X-Amz-Expires"] == ["3600"]
    assert query["X-Amz-Credential"] == [f"{KEY_ID}/20261116/eu-central-1/s3/aws4_request"]


def test_keys_do_not_print():
    batch = terms(token=TOKEN, host="h")

    assert SECRET not in repr(batch)
    assert TOKEN not in repr(batch)


def test_signing_key_is_the_one_that_is_documented():
    """The example of the service's documentation, for a day and a region."""
    key = signing_key("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "20130524", "us-east-1")
    request = Presigning(
        host="examplebucket.s3.amazonaws.com",
        region="us-east-1",
        keys=AwsTempCredentials(
            access_key_id="AKIAIOSFODNN7EXAMPLE",
            secret_access_key="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            session_token="",
        ),
        signed_at=datetime(2013, 5, 24, tzinfo=UTC),
        life=timedelta(days=1),
    )

    assert len(key) == 32
    assert (
        sign_urls(request, "/", [b"test.txt"])
        == b"aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    )
