from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from gateway.domain.location import parse_location
from tests.cases import each_case
from tests.unit.vendors.words import told
from vendors.s3 import vendor
from vendors.s3.config import check, check_dir, parse, policy_for

HOUR = timedelta(hours=1)

KEYS = {"kind": "keys", "accessKeyId": "k", "secretAccessKey": {"value": "hunter2"}}
TABLE = parse_location("s3://lake/t/orders")
ROLE = {"arn": "arn:aws:iam:::role/vended"}


def entry(profile: str, **more: Any) -> dict[str, Any]:
    return {"profile": profile, "endpoint": "https://s3.example:9000", "identity": KEYS, **more}


def custom(**capabilities: Any) -> dict[str, Any]:
    return entry("custom", capabilities=capabilities)


@each_case(
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
    assert check_dir(options, TABLE) == []


@each_case(
    ("options", "words"),
    [
        (entry("minio", role=ROLE), "role: is ignored by minio: remove it"),
        (
            entry("seaweedfs", role={**ROLE, "externalId": "x"}),
            "role.externalId: is not checked by seaweedfs",
        ),
        (entry("ceph", role={**ROLE, "externalId": "x"}), "role.externalId: is not checked by ceph"),
        (entry("minio", sessionTags=True), "sessionTags: are not kept by minio"),
        (entry("custom"), "capabilities: is for profile: custom, which needs it"),
        (entry("minio", capabilities={}), "capabilities: is for profile: custom"),
        (entry("aws"), "profile: must be one of seaweedfs, minio, ceph, custom"),
        (entry("seaweed"), "profile: must be one of seaweedfs, minio, ceph, custom; did you mean seaweedfs?"),
        (
            entry("minio", endpoint="https://user:hunter2@host"),
            "endpoint: must begin with https:// or http://",
        ),
        (entry("minio", endpoint="s3.example"), "endpoint: must begin with https:// or http://"),
        (entry("minio", identity=None), "identity: must be a mapping that says who the gateway is; its kind"),
        (entry("ceph", role={"arn": "Vended"}), "role.arn: must be the ARN of a role"),
        (entry("ceph", role={"arn": "arn:aws:iam::0:user/x"}), "role.arn: must be the ARN of a role"),
        (entry("minio", allowHttp="yes"), "allowHttp: must be true or false; did you mean true?"),
        (custom(shortestSeconds=0), "capabilities.shortestSeconds: must be more than 0"),
        (custom(longestSeconds="1h"), "capabilities.longestSeconds: must be a whole number"),
    ],
)
def test_what_a_store_would_ignore_is_refused(options, words):
    (fault,) = told(check(options))

    assert fault.startswith(words)
    assert "hunter2" not in fault


def test_all_that_a_store_would_ignore_is_told_at_once():
    options = entry("minio", role=ROLE, sessionTags=True, endpoint="http://minio:9000")

    assert [fault.path for fault in check(options)] == [("endpoint",), ("role",), ("sessionTags",)]


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

    assert fault.path == tuple(more)
    assert "allowHttp" in fault.message
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
    assert check_dir(options, parse_location("s3://lake/a*b")) == []


@each_case("path", ["a*b", "a?b", "a$b", "${aws:username}", "${*}"])
@each_case("profile", ["minio", "seaweedfs", "ceph"])
def test_a_path_that_no_policy_of_the_store_names_exactly_is_refused(profile, path):
    options = entry(profile, acceptCaseVariants=True, **({} if profile == "minio" else {"role": ROLE}))

    (fault,) = check_dir(options, parse_location(f"s3://lake/{path}"))

    assert "*, ? or $" in fault


@pytest.mark.parametrize("path", ["t/orders", "T", "ü"])
def test_a_store_that_folds_case_is_used_only_where_that_was_accepted(path):
    location = parse_location(f"s3://lake/{path}")

    (fault,) = check_dir(entry("seaweedfs", role=ROLE), location)

    assert "acceptCaseVariants" in fault
    assert check_dir(entry("seaweedfs", role=ROLE, acceptCaseVariants=True), location) == []


def test_a_path_without_letters_has_no_variants():
    assert check_dir(entry("seaweedfs", role=ROLE), parse_location("s3://lake/2026/05")) == []


def test_a_store_that_ignores_policies_vends_nothing():
    (fault,) = check_dir(custom(), TABLE)

    assert "does not narrow sessions" in fault


@pytest.mark.parametrize("profile", ["ceph", "seaweedfs"])
def test_a_store_that_needs_a_role_says_so(profile):
    (fault,) = check_dir(entry(profile), TABLE)

    assert "set options.role" in fault


@each_case(
    ("options", "words"),
    [
        (entry("seaweedfs", role=ROLE), "from 15 minutes to 12 hours: change credentialLife"),
        (entry("minio"), "from 15 minutes to 7 days: change credentialLife"),
        (custom(shortestSeconds=60, longestSeconds=3600), "from 1 minute to 1 hour: change credentialLife"),
        (custom(shortestSeconds=90, longestSeconds=5400), "from 90 seconds to 90 minutes: change"),
    ],
)
def test_a_life_that_the_store_never_gives_is_told_with_those_that_it_gives(options, words):
    for life in (timedelta(seconds=30), timedelta(days=8)):
        (fault,) = vendor.check_life(options, life)
        assert words in fault
    assert vendor.check_life(options, HOUR) == []


def test_the_policy_is_that_of_aws_for_a_plain_path():
    policy = json.loads(policy_for(TABLE, parse(entry("minio"))))

    assert policy["Statement"][0]["Resource"] == "arn:aws:s3:::lake/t/orders/*"
    assert policy["Statement"][1]["Condition"] == {"StringLike": {"s3:prefix": "t/orders/*"}}


def test_tokens_come_from_the_store_itself_unless_another_place_is_named():
    elsewhere = parse(entry("minio", stsEndpoint="https://sts.example"))

    assert parse(entry("minio")).endpoints("lake").sts == "https://s3.example:9000"
    assert elsewhere.endpoints("lake").sts == "https://sts.example"


@each_case(
    ("more", "bucket", "path_style"),
    [
        ({}, "lake", True),
        ({"pathStyle": False}, "lake", False),
        ({"pathStyle": False}, "lake.example.org", True),
        ({"pathStyle": False}, "la_ke", True),
        ({"pathStyle": False, "endpoint": "http://minio:9000", "allowHttp": True}, "lake.a", False),
        ({"pathStyle": False, "endpoint": "https://10.0.0.1:9000"}, "lake", True),
    ],
)
def test_the_bucket_is_in_the_hosts_name_where_that_was_asked_for_and_can_work(more, bucket, path_style):
    assert parse(entry("minio", **more)).endpoints(bucket).path_style is path_style


def test_urls_can_be_signed_whatever_the_store_makes_of_policies():
    for options in (entry("minio"), entry("seaweedfs"), entry("ceph"), custom()):
        assert vendor.check_url(options, TABLE) == []
