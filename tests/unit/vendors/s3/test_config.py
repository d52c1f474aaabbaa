from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from gateway.domain.location import parse_location
from vendors.s3.config import check, check_dir, parse, policy_for

HOUR = timedelta(hours=1)

KEYS = {"kind": "keys", "accessKeyId": "k", "secretAccessKey": {"value": "hunter2"}}
TABLE = parse_location("s3://lake/t/orders")
ROLE = {"arn": "arn:aws:iam:::role/vended"}


def entry(profile: str, **more: Any) -> dict[str, Any]:
    return {"profile": profile, "endpoint": "https://s3.example:9000", "identity": KEYS, **more}


def custom(**capabilities: Any) -> dict[str, Any]:
    return entry("custom", capabilities=capabilities)


@pytest.mark.parametrize(
    "options",
    [
        entry("minio"),
        entry("seaweedfs", acceptCaseVariants=True, role=ROLE),
        entry("ceph", role=ROLE),
        custom(inlinePolicy=True),
    ],
)
def test_each_profile_vends_with_what_it_needs(options):
    assert check(options) == []
    assert check_dir(options, TABLE, HOUR) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (entry("minio", role=ROLE), "minio ignores roles"),
        (entry("seaweedfs", role={**ROLE, "externalId": "x"}), "does not check external ids"),
        (entry("ceph", role={**ROLE, "externalId": "x"}), "does not check external ids"),
        (entry("minio", sessionTags=True), "does not keep session tags"),
        (entry("custom"), "capabilities"),
        (entry("minio", capabilities={}), "capabilities"),
        (entry("aws"), "profile"),
        (entry("minio", endpoint="https://user:hunter2@host"), "endpoint"),
        (entry("minio", endpoint="s3.example"), "endpoint"),
        (entry("minio", identity=None), "identity"),
    ],
)
def test_what_a_store_would_ignore_is_refused(options, words):
    (fault,) = check(options)

    assert words in fault
    assert "hunter2" not in fault


@pytest.mark.parametrize(
    "more",
    [
        {"endpoint": "http://minio:9000"},
        {"stsEndpoint": "http://127.0.0.1.example:9000"},
        {"endpoint": "http://localhost.example"},
    ],
)
def test_keys_are_sent_in_the_clear_only_where_that_was_allowed(more):
    (fault,) = check(entry("minio", **more))

    assert "allowHttp" in fault
    assert check(entry("minio", **more, allowHttp=True)) == []


@pytest.mark.parametrize("host", ["127.0.0.1:9000", "localhost", "[::1]:9000"])
def test_the_machine_itself_is_reached_without_encryption(host):
    assert check(entry("minio", endpoint=f"http://{host}")) == []


def test_what_a_store_of_ones_own_can_do_may_be_used():
    options = {
        **custom(
            inlinePolicy=True, externalId=True, sessionTags=True, escapesWildcards=True, role="required"
        ),
        "role": {**ROLE, "externalId": "x"},
        "sessionTags": True,
    }

    assert check(options) == []
    assert check_dir(options, parse_location("s3://lake/a*b"), HOUR) == []


@pytest.mark.parametrize("path", ["a*b", "a?b", "a$b", "${aws:username}", "${*}"])
@pytest.mark.parametrize("profile", ["minio", "seaweedfs", "ceph"])
def test_a_path_that_no_policy_of_the_store_names_exactly_is_refused(profile, path):
    options = entry(profile, acceptCaseVariants=True, **({} if profile == "minio" else {"role": ROLE}))

    (fault,) = check_dir(options, parse_location(f"s3://lake/{path}"), HOUR)

    assert "*, ? or $" in fault


@pytest.mark.parametrize("path", ["t/orders", "T", "ü"])
def test_a_store_that_folds_case_is_used_only_where_that_was_accepted(path):
    location = parse_location(f"s3://lake/{path}")

    (fault,) = check_dir(entry("seaweedfs", role=ROLE), location, HOUR)

    assert "acceptCaseVariants" in fault
    assert check_dir(entry("seaweedfs", role=ROLE, acceptCaseVariants=True), location, HOUR) == []


def test_a_path_without_letters_has_no_variants():
    assert check_dir(entry("seaweedfs", role=ROLE), parse_location("s3://lake/2026/05"), HOUR) == []


def test_a_store_that_ignores_policies_vends_nothing():
    (fault,) = check_dir(custom(), TABLE, HOUR)

    assert "by url only" in fault


@pytest.mark.parametrize("profile", ["ceph", "seaweedfs"])
def test_a_store_that_needs_a_role_says_so(profile):
    (fault,) = check_dir(entry(profile), TABLE, HOUR)

    assert "'role'" in fault


def test_options_that_are_wrong_are_told_once():
    assert check_dir({"profile": "minio"}, TABLE, HOUR) == []


def test_the_policy_is_that_of_aws_for_a_plain_path():
    policy = json.loads(policy_for(TABLE, parse(entry("minio"))))

    assert policy["Statement"][0]["Resource"] == "arn:aws:s3:::lake/t/orders/*"
    assert policy["Statement"][1]["Condition"] == {"StringLike": {"s3:prefix": "t/orders/*"}}


def test_tokens_come_from_the_store_itself_unless_another_place_is_named():
    assert parse(entry("minio")).endpoints.sts == "https://s3.example:9000"
    assert parse(entry("minio", stsEndpoint="https://sts.example")).endpoints.sts == "https://sts.example"
