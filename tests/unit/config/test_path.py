from __future__ import annotations

import pytest

from gateway.config.path import describe, format_path, is_secret, looks_secret, quoted, redacted
from tests.cases import each_case

RANDOM = "aB3" + "xY7" * 10


@each_case(
    ("path", "text"),
    [
        ((), ""),
        (("port",), "port"),
        (("recipients", 0, "tokens", 1, "hash"), "recipients[0].tokens[1].hash"),
        (("shares", 0, "properties", "a b"), "shares[0].properties['a b']"),
        (("a", "x" * 200), "a." + "x" * 200),
        (("a", "\n" * 200), "a['" + "\\n" * 80 + "…']"),
    ],
)
def test_a_path_reads_as_in_the_file(path, text):
    assert format_path(path) == text


def test_a_key_that_looks_like_a_secret_is_not_shown():
    assert RANDOM not in format_path(("authorization", RANDOM))


@each_case(
    "path",
    [
        ("authorization",),
        ("authorization", "bearerToken"),
        ("keys", "current", "secret"),
        ("keys", "current", "anything"),
        ("recipients", 0, "tokens", 0, "hash"),
        ("storages", 0, "options", "accessKeyId"),
        ("dbPassword",),
        ("SLUICE_KEYS_CURRENT_SECRET_FILE",),
    ],
)
def test_what_stands_where_secrets_do_is_not_shown(path):
    assert is_secret(path)
    assert describe("hunter2", path) == "a text of 7 characters"
    assert describe(12345, path) == "a number or boolean"


@each_case(
    "path",
    [
        ("port",),
        ("recipients", 0, "name"),
        ("recipients", 0, "tokens", 0, "expires"),
        ("storages", 0, "credentialLife"),
        ("credentials", "life"),
        (),
    ],
)
def test_what_stands_elsewhere_is_shown(path):
    assert describe("hunter2", path) == "'hunter2'"


@each_case(
    ("value", "text"),
    [
        (None, "nothing"),
        ({"a": 1}, "a mapping"),
        ([1, 2], "a list of 2"),
        ((1,), "a list of 1"),
        ("", "an empty text"),
        ("a\nb", "a text of 2 lines"),
        (True, "true"),
        (12, "12"),
        ("x" * 100, repr("x" * 80 + "…")),
    ],
)
def test_a_value_is_described_by_what_it_is(value, text):
    assert describe(value, ("port",)) == text


@pytest.mark.parametrize("text", ["slc_abc", "-----BEGIN PRIVATE KEY-----", RANDOM])
def test_what_looks_like_a_secret_is_never_quoted(text):
    assert looks_secret(text)
    assert text not in quoted(text)


@each_case(
    "text",
    [
        "sales",
        "00000000-0000-0000-0000-000000000000",
        "s3://bucket/Data1/abcdefghijklmnopqrst",
        "/Data/abc1/" + "x" * 30,
    ],
)
def test_what_does_not_look_like_a_secret_is_quoted(text):
    assert quoted(text) == repr(text)


def test_urls_lose_their_passwords_and_signatures():
    text = "s3://key:hunter2@bucket/x and https://a.example/x?sig=hunter2&b=c"
    assert redacted(text) == "s3://…@bucket/x and https://a.example/x?sig=…&b=c"


@each_case(
    "text",
    [
        "s3://AKIA:hun/ter2@bucket/x",
        "https://x.example bearerToken: hun/ter2",
        "x authorization: bearerToken:?  hun/ter2",
        'a secret: "hun/ter2"',
    ],
)
def test_secrets_with_slashes_and_of_lines_run_together_are_not_shown(text):
    assert "ter2" not in quoted(text)
