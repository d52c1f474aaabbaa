"""Policies of random tables, read by an evaluator that shares no code with what built them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from gateway.domain.location import Location, parse_location
from gateway.errors import InvalidArgument, Unsupported
from tests import policy_evaluator as iam
from vendors.iam_policy import PolicyTerms, session_policy

BUCKET = "lake"
# What a policy, a variable or a JSON text could stumble over, beside plain letters.
ALPHABET = "ab*?${}[]\\'\"%+ =,:;&#@!~^|<>()-_.éß日😀"
SEGMENT = st.text(st.sampled_from(ALPHABET), min_size=1, max_size=8)
PATH = st.lists(SEGMENT, min_size=1, max_size=4).map("/".join)
Policy = dict[str, Any]
READS = ("s3:GetObject", "s3:GetObjectVersion")
FORBIDDEN = (
    *("s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion", "s3:PutObjectAcl"),
    *(
        "s3:AbortMultipartUpload",
        "s3:GetObjectAcl",
        "s3:PutBucketPolicy",
        "s3:ListBucketVersions",
        "s3:ListAllMyBuckets",
        "s3:*",
    ),
    *("sts:AssumeRole", "iam:PassRole", "kms:Decrypt"),
)
ROLE = "arn:aws:iam::123456789012:role/any"
# A session's own values: a variable in a policy must not turn into one of them.
CONTEXT = {"aws:username": "ab", "aws:userid": "AROA:acme", "aws:PrincipalTag/sluice:recipient": "acme"}


def table_at(path: str) -> Location:
    try:
        return parse_location(f"s3://{BUCKET}/{path}")
    except InvalidArgument:
        # Not a table that could be configured.
        assume(False)
        raise


def policy_of(location: Location, **terms: object) -> Policy:
    try:
        document: Policy = json.loads(session_policy(location, PolicyTerms(**terms)))  # type: ignore[arg-type]
    except Unsupported:
        # Too long, which is the subject of another test.
        assume(False)
        raise
    return document


def reads(policy: Policy, key: str, bucket: str = BUCKET) -> bool:
    arn = f"arn:aws:s3:::{bucket}/{key}"
    return any(iam.evaluate(policy, action, arn, CONTEXT) for action in READS)


def lists(policy: Policy, prefix: str | None, bucket: str = BUCKET) -> bool:
    context = CONTEXT if prefix is None else {**CONTEXT, "s3:prefix": prefix}
    return iam.evaluate(policy, "s3:ListBucket", f"arn:aws:s3:::{bucket}", context)


@given(PATH, st.text(st.sampled_from(ALPHABET + "/"), max_size=12))
@example("*", "x")
@example("${aws:username}", "x")
@example("${*}", "x")
def test_policy_reads_and_lists_everything_below_the_table(path, rest):
    policy = policy_of(table_at(path))

    assert reads(policy, f"{path}/{rest}")
    assert lists(policy, f"{path}/{rest}")


@given(PATH, PATH)
@example("orders", "orders2")
@example("*", "a")
@example("a?", "ab")
@example("${aws:username}", "ab")
@example("a/b", "a")
def test_policy_opens_no_key_that_is_not_below_the_table(path, key):
    assume(not key.startswith(f"{path}/"))
    policy = policy_of(table_at(path))

    assert not reads(policy, key)
    assert not lists(policy, key)


@given(PATH, SEGMENT)
def test_policy_opens_no_sibling_whose_name_begins_like_the_tables(path, more):
    policy = policy_of(table_at(path))

    assert not reads(policy, f"{path}{more}/part-0")
    assert not lists(policy, f"{path}{more}/")


@given(PATH)
def test_policy_lists_nothing_above_the_table(path):
    policy = policy_of(table_at(path))

    assert not lists(policy, None)
    assert not lists(policy, "")
    assert not lists(policy, path)
    parts = path.split("/")
    for depth in range(1, len(parts)):
        assert not lists(policy, "/".join(parts[:depth]) + "/")


@given(PATH)
def test_policy_opens_no_other_bucket(path):
    policy = policy_of(table_at(path))

    for bucket in ("lake2", "lak", "other"):
        assert not reads(policy, f"{path}/part-0", bucket)
        assert not lists(policy, f"{path}/", bucket)


@given(PATH)
def test_policy_allows_reading_only(path):
    policy = policy_of(table_at(path))

    for action in FORBIDDEN:
        for resource in (f"arn:aws:s3:::{BUCKET}/{path}/part-0", f"arn:aws:s3:::{BUCKET}", ROLE):
            assert not iam.evaluate(policy, action, resource, {**CONTEXT, "s3:prefix": f"{path}/"})


@given(PATH)
def test_store_that_cannot_escape_is_given_no_pattern_of_a_tables_own(path):
    location = table_at(path)
    try:
        policy = session_policy(location, PolicyTerms(escapes=False))
    except Unsupported:
        return
    assert not set("*?$") & set(path)
    assert reads(json.loads(policy), f"{path}/part-0")


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_policy_names_the_partition_of_the_role(partition):
    policy = policy_of(table_at("orders"), partition=partition)

    assert iam.evaluate(policy, "s3:GetObject", f"arn:{partition}:s3:::{BUCKET}/orders/part-0", CONTEXT)
    other = "aws" if partition != "aws" else "aws-cn"
    assert not iam.evaluate(policy, "s3:GetObject", f"arn:{other}:s3:::{BUCKET}/orders/part-0", CONTEXT)


def test_policy_of_an_access_point_opens_the_path_through_it():
    point = "arn:aws:s3:eu-central-1:123456789012:accesspoint/lake"
    policy = policy_of(table_at("orders"), access_point=point)

    assert iam.evaluate(policy, "s3:GetObject", f"{point}/object/orders/part-0", CONTEXT)
    assert not iam.evaluate(policy, "s3:GetObject", f"{point}/object/orders2/part-0", CONTEXT)
    assert iam.evaluate(policy, "s3:ListBucket", point, {**CONTEXT, "s3:prefix": "orders/"})
    assert not iam.evaluate(policy, "s3:ListBucket", point, {**CONTEXT, "s3:prefix": "orders"})
