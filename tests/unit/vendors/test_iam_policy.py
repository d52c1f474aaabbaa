from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.domain.location import Location, parse_location
from gateway.errors import InvalidArgument, Unsupported
from tests.cases import each_case
from vendors.iam_policy import MOST_CHARACTERS, PolicyTerms, escape, session_policy

AWS = PolicyTerms()
KEY = "arn:aws:kms:eu-west-1:123456789012:key/0a1b"
ACCESS_POINT = "arn:aws:s3:eu-west-1:123456789012:accesspoint/lake"

segments = st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1, max_size=12)
paths = st.lists(
    st.one_of(segments, st.sampled_from(["*", "?", "$", "${*}", "${aws:username}", "${$}{*}", 'a"b', "%7C"])),
    min_size=1,
    max_size=4,
).map("/".join)


def located(path: str) -> Location:
    try:
        return parse_location(f"s3://lake/{path}")
    except InvalidArgument:
        assume(False)
        raise


def unescape(pattern: str) -> str:
    return re.sub(r"\$\{([*?$])\}", r"\1", pattern)


def statements(policy: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(policy)["Statement"]
    return found


def test_a_table_is_read_and_listed_below_its_path_and_nowhere_else():
    policy = json.loads(session_policy(parse_location("s3://lake/sales/orders"), AWS))

    assert policy == {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": ["s3:GetObject", "s3:GetObjectVersion"],
                "Resource": "arn:aws:s3:::lake/sales/orders/*",
            },
            {
                "Effect": "Allow",
                "Action": "s3:ListBucket",
                "Resource": "arn:aws:s3:::lake",
                "Condition": {"StringLike": {"s3:prefix": "sales/orders/*"}},
            },
            {"Effect": "Allow", "Action": "s3:GetBucketLocation", "Resource": "arn:aws:s3:::lake"},
        ],
    }


def test_the_document_has_no_blanks_to_pay_for():
    policy = session_policy(parse_location("s3://lake/sales/orders"), AWS)

    assert " " not in policy
    assert len(policy) < 400


def test_a_root_is_listed_without_a_prefix():
    read, listing, _ = statements(session_policy(parse_location("s3://lake"), AWS))

    assert read["Resource"] == "arn:aws:s3:::lake/*"
    # A request without a prefix has no such key, which a condition would never match.
    assert "Condition" not in listing


@pytest.mark.parametrize("partition", ["aws-cn", "aws-us-gov"])
def test_other_partitions_are_named_in_every_resource(partition):
    policy = session_policy(parse_location("s3://lake/t"), PolicyTerms(partition=partition))

    assert all(found["Resource"].startswith(f"arn:{partition}:s3:::lake") for found in statements(policy))


def test_an_access_point_stands_for_its_bucket():
    terms = PolicyTerms(access_point=ACCESS_POINT)
    read, listing = statements(session_policy(parse_location("s3://lake-x-s3alias/t"), terms))

    assert read["Resource"] == f"{ACCESS_POINT}/object/t/*"
    assert listing["Resource"] == ACCESS_POINT
    assert listing["Condition"] == {"StringLike": {"s3:prefix": "t/*"}}


def test_configured_keys_decrypt_through_s3_only():
    policy = session_policy(parse_location("s3://lake/t"), PolicyTerms(kms_keys=(KEY,)))

    assert statements(policy)[-1] == {
        "Effect": "Allow",
        "Action": "kms:Decrypt",
        "Resource": [KEY],
        "Condition": {"StringLike": {"kms:ViaService": "s3.*"}},
    }


def test_a_store_without_the_action_is_not_asked_for_its_location():
    policy = session_policy(parse_location("s3://lake/t"), PolicyTerms(bucket_location=False))

    assert "GetBucketLocation" not in policy


@each_case(
    ("text", "pattern"),
    [
        ("a*b", "a${*}b"),
        ("a?b", "a${?}b"),
        ("a$b", "a${$}b"),
        ("${*}", "${$}{${*}}"),
        ("${aws:username}", "${$}{aws:username}"),
    ],
)
def test_wildcards_and_variables_are_escaped_once(text, pattern):
    assert escape(text) == pattern


@given(st.text())
def test_an_escaped_text_is_that_text_again_without_any_wildcard_left(text):
    escaped = escape(text)

    assert unescape(escaped) == text
    assert not re.search(r"[*?$]", re.sub(r"\$\{[*?$]\}", "", escaped))


@given(paths)
def test_whatever_the_path_the_document_is_json_of_ascii_that_names_it(path):
    location = located(path)
    assume(len(location.path) < 60)
    policy = session_policy(location, AWS)
    read, listing, bucket_location = statements(policy)

    assert policy.isascii()
    assert unescape(read["Resource"]) == f"arn:aws:s3:::lake/{location.path}/*"
    assert unescape(listing["Condition"]["StringLike"]["s3:prefix"]) == f"{location.path}/*"
    assert {found["Effect"] for found in statements(policy)} == {"Allow"}
    assert listing["Resource"] == bucket_location["Resource"] == "arn:aws:s3:::lake"


@given(paths)
def test_a_store_without_escapes_is_given_plain_paths_only(path):
    location = located(path)
    terms = PolicyTerms(escapes=False)
    if set(location.path) & set("*?$"):
        with pytest.raises(Unsupported, match=r"\*, \? or \$"):
            session_policy(location, terms)
    else:
        assert session_policy(location, terms) == session_policy(location, AWS)


def test_a_policy_that_is_too_long_is_refused_and_never_cut():
    base = len(session_policy(parse_location("s3://lake/x"), AWS)) - 2
    longest = (MOST_CHARACTERS - base) // 2

    policy = session_policy(parse_location(f"s3://lake/{'x' * longest}"), AWS)
    assert MOST_CHARACTERS - 2 < len(policy) <= MOST_CHARACTERS
    assert len(statements(policy)) == 3
    with pytest.raises(Unsupported, match="too long"):
        session_policy(parse_location(f"s3://lake/{'x' * (longest + 1)}"), AWS)


def test_a_letter_outside_latin_costs_its_escape():
    location = parse_location(f"s3://lake/{'日' * 160}")

    with pytest.raises(Unsupported, match="too long"):
        session_policy(location, AWS)
