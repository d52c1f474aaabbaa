from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.domain.location import parse_location
from vendors.aws.config import check, check_dir, parse

TABLE = parse_location("s3://lake/sales/orders")
OPTIONS: dict[str, object] = {
    "region": "eu-west-1",
    "identity": {"kind": "chain"},
    "role": {"arn": "arn:aws:iam::123456789012:role/sluice/vended", "externalId": "x"},
}


def test_all_options_together_are_fine():
    assert (
        check(
            {
                **OPTIONS,
                "sessionTags": False,
                "kmsKeys": ["arn:aws:kms:eu-west-1:123456789012:key/0a-1b"],
                "accessPoint": "arn:aws:s3:eu-west-1:123456789012:accesspoint/lake",
                "endpoint": "https://bucket.vpce-1.s3.eu-west-1.vpce.amazonaws.com",
                "stsEndpoint": "https://sts-fips.us-east-1.amazonaws.com",
                "revocation": {"putRolePolicy": True},
            }
        )
        == []
    )


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"identity": None}, "identity"),
        ({"region": None}, "'region' is missing"),
        ({"role": {"arn": "arn:aws:iam::123456789012:user/x"}}, "role.arn"),
        ({"role": {"arn": "vended"}}, "role.arn"),
        ({"kmsKeys": ["arn:aws:kms:eu-west-1:123456789012:key/*"]}, "kmsKeys.0"),
        ({"kmsKeys": ["*"]}, "kmsKeys.0"),
        ({"accessPoint": "arn:aws:s3:eu-west-1:123456789012:accesspoint/*"}, "accessPoint"),
        ({"endpoint": "https://user:secret@host"}, "endpoint"),
        ({"stsEndpoint": "sts.example"}, "stsEndpoint"),
        ({"stsEndpoint": "http://sts.example"}, "stsEndpoint"),
        ({"endpoint": "http://127.0.0.1.example"}, "endpoint"),
        ({"rolle": {}}, "did you mean 'role'?"),
    ],
)
def test_faults_are_told(more, words):
    (fault,) = check({**OPTIONS, **more})

    assert words in fault
    assert "secret" not in fault


def test_putting_a_policy_needs_a_role():
    (fault,) = check({"region": "eu", "identity": {"kind": "chain"}, "revocation": {"putRolePolicy": True}})

    assert "'role'" in fault


def test_a_table_can_be_vended():
    assert check_dir(OPTIONS, TABLE, timedelta(hours=1)) == []
    assert check_dir(OPTIONS, parse_location("s3://lake/a*b?c$d"), timedelta(hours=1)) == []


def test_a_storage_without_a_role_says_so():
    options = {"region": "eu-west-1", "identity": {"kind": "chain"}}

    assert check_dir(options, TABLE, timedelta(hours=1)) == [
        "the option 'role' is missing: it names the role whose sessions recipients are given"
    ]


def test_a_path_that_no_policy_holds_says_so():
    (fault,) = check_dir(OPTIONS, parse_location(f"s3://lake/{'x' * 1000}"), timedelta(hours=1))

    assert "too long" in fault


def test_options_that_are_wrong_are_told_once():
    assert check_dir({"region": 5}, TABLE, timedelta(hours=1)) == []


@pytest.mark.parametrize(
    ("options", "partition"),
    [
        ({"role": {"arn": "arn:aws-cn:iam::123456789012:role/x"}}, "aws-cn"),
        ({"role": {"arn": "arn:aws-us-gov:iam::123456789012:role/x"}}, "aws-us-gov"),
        ({"region": "cn-north-1"}, "aws-cn"),
        ({"region": "us-gov-west-1"}, "aws-us-gov"),
        ({"region": "eu-west-1"}, "aws"),
        ({}, "aws"),
    ],
)
def test_the_partition_is_that_of_the_role_or_the_region(options, partition):
    assert parse(options).terms.partition == partition


@pytest.mark.parametrize(
    ("options", "bucket", "path_style"),
    [({}, "lake", False), ({}, "lake.example.org", True), ({"endpoint": "https://vpce"}, "lake", True)],
)
def test_the_bucket_is_in_the_hosts_name_where_that_can_work(options, bucket, path_style):
    assert parse(options).endpoints(bucket).path_style is path_style


def test_a_life_that_sts_never_gives_is_told_before_anybody_asks():
    (fault,) = check_dir(OPTIONS, TABLE, timedelta(hours=13))
    assert "change credentialLife" in fault
    chained = {**OPTIONS, "identity": {"kind": "chain", "assumeRole": {"arn": "arn:aws:iam::1:role/x"}}}
    (fault,) = check_dir(chained, TABLE, timedelta(hours=2))
    assert "set credentialLife to 1h" in fault
