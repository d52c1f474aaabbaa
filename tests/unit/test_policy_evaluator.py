from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each_case
from tests.policy_evaluator import (
    UnknownElement,
    allows,
    bucket_request,
    delete_object,
    evaluate,
    get_bucket_location,
    get_object,
    get_object_version,
    list_bucket,
    object_request,
    put_object,
)


def policy(*statements):
    return {"Version": "2012-10-17", "Statement": list(statements)}


def allow(action, resource, **more):
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def deny(action, resource, **more):
    return {"Effect": "Deny", "Action": action, "Resource": resource, **more}


# The policy for `marketing` projects and the home folders are AWS's own examples of wildcards and variables.
MARKETING = policy(
    allow(
        ["s3:ListBucket"],
        ["arn:aws:s3:::amzn-s3-demo-bucket"],
        Condition={"StringLike": {"s3:prefix": ["marketing/*"]}},
    ),
    allow(["s3:GetObject", "s3:PutObject"], ["arn:aws:s3:::amzn-s3-demo-bucket/marketing/*"]),
)
HOMES = policy(
    allow(
        ["s3:ListBucket"],
        ["arn:aws:s3:::amzn-s3-demo-bucket"],
        Condition={"StringLike": {"s3:prefix": ["${aws:username}/*"]}},
    ),
    allow(["s3:GetObject"], ["arn:aws:s3:::amzn-s3-demo-bucket/${aws:username}/*"]),
)
BUCKET = "amzn-s3-demo-bucket"


@each_case(
    ("request_", "expected"),
    [
        (get_object(BUCKET, "marketing/a"), True),
        (get_object(BUCKET, "marketing/a/b/c"), True),
        (put_object(BUCKET, "marketing/a"), True),
        (get_object(BUCKET, "marketing/"), True),
        (get_object(BUCKET, "marketing"), False),
        (get_object(BUCKET, "marketing2/a"), False),
        (get_object(BUCKET, "Marketing/a"), False),
        (get_object("other", "marketing/a"), False),
        (get_object_version(BUCKET, "marketing/a"), False),
        (delete_object(BUCKET, "marketing/a"), False),
        (list_bucket(BUCKET, "marketing/"), True),
        (list_bucket(BUCKET, "marketing/x", "/"), True),
        (list_bucket(BUCKET, "marketing"), False),
        (list_bucket(BUCKET, ""), False),
        (list_bucket(BUCKET), False),
        (list_bucket("other", "marketing/"), False),
        (get_bucket_location(BUCKET), False),
        (bucket_request("s3:ListBucketVersions", BUCKET), False),
        (object_request("s3:GetObjectTagging", BUCKET, "marketing/a"), False),
        (get_object(BUCKET, "marketing/a", partition="aws-cn"), False),
    ],
)
def test_wildcards_of_awss_example(request_, expected):
    assert allows(MARKETING, request_) is expected
    assert allows(json.dumps(MARKETING), request_) is expected


@each_case(
    ("user", "key", "expected"),
    [
        ("ana", "ana/x", True),
        ("ana", "bob/x", False),
        # A variable's value is text: it brings no wildcard with it.
        ("*", "bob/x", False),
        ("*", "*/x", True),
        ("a?a", "ana/x", False),
    ],
)
def test_a_variable_is_what_the_request_says_and_only_text(user, key, expected):
    resource = f"arn:aws:s3:::{BUCKET}/{key}"
    assert evaluate(HOMES, "s3:GetObject", resource, {"aws:username": user}) is expected


def test_a_variable_without_a_value_matches_nothing():
    assert not evaluate(HOMES, "s3:GetObject", f"arn:aws:s3:::{BUCKET}/ana/x", {})
    assert not evaluate(HOMES, "s3:GetObject", f"arn:aws:s3:::{BUCKET}/${{aws:username}}/x", {})


def test_a_variable_can_have_a_default():
    team = policy(allow("s3:GetObject", "arn:aws:s3:::b/${aws:PrincipalTag/team, 'company-wide'}/*"))
    assert evaluate(team, "s3:GetObject", "arn:aws:s3:::b/company-wide/x", {})
    assert evaluate(team, "s3:GetObject", "arn:aws:s3:::b/red/x", {"aws:PrincipalTag/team": "red"})
    assert not evaluate(
        team, "s3:GetObject", "arn:aws:s3:::b/company-wide/x", {"aws:PrincipalTag/team": "red"}
    )


@pytest.mark.parametrize("character", ["*", "?", "$"])
def test_an_escaped_character_is_itself_and_nothing_more(character):
    escaped = policy(allow("s3:GetObject", f"arn:aws:s3:::b/t${{{character}}}/*"))
    assert allows(escaped, get_object("b", f"t{character}/x"))
    for other in ("tx/x", "t/x", "txx/x", f"t${{{character}}}/x"):
        assert not allows(escaped, get_object("b", other))


def test_a_question_mark_is_exactly_one_character():
    one = policy(allow("s3:GetObject", "arn:aws:s3:::b/t?/x"))
    assert allows(one, get_object("b", "ta/x"))
    assert not allows(one, get_object("b", "t/x"))
    assert not allows(one, get_object("b", "tab/x"))


def test_a_dollar_without_braces_is_text():
    assert allows(policy(allow("s3:GetObject", "arn:aws:s3:::b/$x/*")), get_object("b", "$x/y"))


def test_an_explicit_deny_wins_wherever_it_stands():
    private = deny("s3:*", "arn:aws:s3:::b/private/*")
    everything = allow("s3:*", "*")
    for statements in ((private, everything), (everything, private)):
        assert allows(policy(*statements), get_object("b", "x"))
        assert not allows(policy(*statements), get_object("b", "private/x"))


def test_nothing_is_allowed_unless_it_is_said():
    assert not allows(policy(deny("s3:PutObject", "*")), get_object("b", "x"))


def test_actions_have_no_case_and_take_wildcards():
    some = policy(allow("s3:getO*", "arn:aws:s3:::b/*"))
    assert allows(some, get_object("b", "x"))
    assert not allows(some, put_object("b", "x"))


def test_not_action_and_not_resource_turn_it_round():
    other = policy({"Effect": "Allow", "NotAction": "s3:Put*", "NotResource": "arn:aws:s3:::b/private/*"})
    assert allows(other, get_object("b", "x"))
    assert not allows(other, put_object("b", "x"))
    assert not allows(other, get_object("b", "private/x"))


def test_a_wildcard_does_not_leave_its_segment_of_the_arn():
    assert not evaluate(
        policy(allow("s3:GetObject", "arn:aws:s3:*:*:b/x")), "s3:GetObject", "arn:aws:s3:::c/x", {}
    )
    assert evaluate(
        policy(allow("s3:GetObject", "arn:aws:s3:*:*:b/*")), "s3:GetObject", "arn:aws:s3:::b/x:y:z", {}
    )


@each_case(
    ("operator", "value", "context", "expected"),
    [
        ("StringEquals", "a/*", {"s3:prefix": "a/*"}, True),
        ("StringEquals", "a/*", {"s3:prefix": "a/b"}, False),
        ("StringEquals", "a", {}, False),
        ("StringEquals", "", {"s3:prefix": ""}, True),
        ("StringEquals", ["a", "b"], {"s3:prefix": "b"}, True),
        ("StringEqualsIfExists", "a", {}, True),
        ("StringEqualsIfExists", "a", {"s3:prefix": "b"}, False),
        ("StringLike", ["a/*", "b/?"], {"s3:prefix": "b/x"}, True),
        ("StringLike", ["a/*", "b/?"], {"s3:prefix": "b/xx"}, False),
        ("StringLikeIfExists", "a/*", {}, True),
        ("StringNotLike", "a/*", {"s3:prefix": "a/b"}, False),
        ("StringNotLike", "a/*", {"s3:prefix": "c"}, True),
        ("StringNotEquals", "a", {}, True),
        ("StringNotEquals", ["a", "b"], {"s3:prefix": "b"}, False),
        ("StringEqualsIgnoreCase", "A", {"s3:prefix": "a"}, True),
    ],
)
def test_condition_operators(operator, value, context, expected):
    document = policy(allow("s3:ListBucket", "arn:aws:s3:::b", Condition={operator: {"s3:prefix": value}}))
    assert evaluate(document, "s3:ListBucket", "arn:aws:s3:::b", context) is expected


def test_all_keys_and_all_operators_of_a_condition_must_hold():
    condition = {
        "StringLike": {"s3:prefix": "a/*", "s3:delimiter": "/"},
        "StringEquals": {"s3:max-keys": "10"},
    }
    document = policy(allow("s3:ListBucket", "*", Condition=condition))
    full = {"s3:prefix": "a/b", "s3:delimiter": "/", "s3:max-keys": "10"}
    assert evaluate(document, "s3:ListBucket", "arn:aws:s3:::b", full)
    for missing in full:
        rest = {key: value for key, value in full.items() if key != missing}
        assert not evaluate(document, "s3:ListBucket", "arn:aws:s3:::b", rest)


@each_case(
    "document",
    [
        {"Statement": [allow("s3:*", "*")]},
        {"Version": "2008-10-17", "Statement": [allow("s3:*", "*")]},
        policy(allow("s3:*", "*", Principal="*")),
        policy(allow("s3:*", "*", Condition={"NumericLessThan": {"s3:max-keys": "10"}})),
        policy(allow("s3:*", "*", Condition={"ForAllValues:StringLike": {"s3:prefix": "a"}})),
        policy(allow("s3:*", "*", Condition={"StringLike": {"s3:prefx": "a"}})),
        policy({"Effect": "allow", "Action": "s3:*", "Resource": "*"}),
        policy({"Effect": "Allow", "Action": "s3:*"}),
        policy({"Effect": "Allow", "Action": "s3:*", "NotAction": "s3:*", "Resource": "*"}),
        policy(allow("s3:*", "lake/*")),
        policy(allow("s3:*", "arn:aws:s*:::lake/*")),
        policy(allow("s3:*", "arn:aws:s3:::lake/${aws:nobody}/*")),
        policy(allow("s3:*", "arn:aws:s3:::lake/${aws:username/*")),
        policy(allow("s3:*", [])),
        policy(allow("s3", "*")),
        {**policy(allow("s3:*", "*")), "Extra": 1},
        '{"Version": "2012-10-17", "Version": "2012-10-17", "Statement": []}',
    ],
)
def test_what_is_not_known_is_told_and_never_guessed(document):
    with pytest.raises(UnknownElement):
        allows(document, get_object("b", "x"))


@given(path=st.text(min_size=1), rest=st.text(), other=st.text())
def test_a_fully_escaped_prefix_allows_exactly_what_begins_with_it(path, rest, other):
    escaped = "".join(f"${{{character}}}" if character in "*?$" else character for character in path)
    document = policy(allow("s3:GetObject", f"arn:aws:s3:::b/{escaped}/*"))
    assert allows(document, get_object("b", f"{path}/{rest}"))
    assert allows(document, get_object("b", other)) is other.startswith(f"{path}/")
