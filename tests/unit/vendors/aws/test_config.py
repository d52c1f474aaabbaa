from __future__ import annotations

from datetime import timedelta

from gateway.domain.location import parse_location
from tests.cases import each_case
from tests.unit.vendors.words import told
from vendors.aws import vendor
from vendors.aws.config import check, check_dir, check_url, parse

TABLE = parse_location("s3://lake/sales/orders")
ACCESS_POINT = "arn:aws:s3:eu-west-1:123456789012:accesspoint/lake"
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
                "accessPoint": ACCESS_POINT,
                "endpoint": "https://bucket.vpce-1.s3.eu-west-1.vpce.amazonaws.com",
                "stsEndpoint": "https://sts-fips.us-east-1.amazonaws.com",
                "revocation": {"putRolePolicy": True},
            }
        )
        == []
    )


@each_case(
    ("more", "words"),
    [
        ({"identity": None}, "identity.kind: is missing: give one of keys, profile, webIdentity, chain"),
        (
            {"identity": "chain"},
            "identity: must be a mapping that says who the gateway is; its kind is one of",
        ),
        ({"region": None}, "region: is missing: the region of the bucket"),
        ({"role": {"arn": "arn:aws:iam::123456789012:user/x"}}, "role.arn: must be the ARN of a role"),
        ({"role": {"arn": "Vended"}}, "role.arn: must be the ARN of a role"),
        ({"kmsKeys": ["arn:aws:kms:eu-west-1:123456789012:key/*"]}, "kmsKeys.0: must be the ARN of a key"),
        ({"kmsKeys": ["*"]}, "kmsKeys.0: must be the ARN of a key"),
        ({"kmsKeys": "*"}, "kmsKeys: must be a list"),
        ({"accessPoint": "arn:aws:s3:eu-west-1:123456789012:accesspoint/*"}, "accessPoint: must be the ARN"),
        ({"endpoint": "https://user:secret@host"}, "endpoint: must begin with https://"),
        ({"stsEndpoint": "sts.example"}, "stsEndpoint: must begin with https://"),
        ({"stsEndpoint": "http://sts.example"}, "stsEndpoint: must begin with https://"),
        ({"endpoint": "http://127.0.0.1.example"}, "endpoint: must begin with https://"),
        ({"rolle": {}}, "rolle: unknown option; did you mean role?"),
        ({"profile": "minio", "regoin": "x"}, "profile: is an option of the vendor s3"),
        ({"revocation": {"putRolePolicy": "yes"}}, "revocation.putRolePolicy: must be true or false"),
        ({"dualStack": "yes"}, "dualStack: must be true or false"),
        ({"dualStack": True, "endpoint": "https://vpce"}, "dualStack: is for the region's own address"),
    ],
)
def test_faults_are_told(more, words):
    (fault,) = told(check({**OPTIONS, **more}))

    assert fault.startswith(words)
    assert "secret" not in fault


def test_putting_a_policy_needs_a_role():
    options = {"region": "eu", "identity": {"kind": "chain"}, "revocation": {"putRolePolicy": True}}

    assert told(check(options)) == ["revocation.putRolePolicy: needs the option role"]


def test_what_does_not_go_together_is_told_all_at_once():
    options = {"identity": {"kind": "chain"}, "revocation": {"putRolePolicy": True}}

    assert [fault.path for fault in check(options)] == [("region",), ("revocation", "putRolePolicy")]


def test_a_table_can_be_vended():
    assert check_dir(OPTIONS, TABLE) == []
    assert check_dir(OPTIONS, parse_location("s3://lake/a*b?c$d")) == []


def test_a_storage_without_a_role_says_so():
    options = {"region": "eu-west-1", "identity": {"kind": "chain"}}

    assert check_dir(options, TABLE) == [
        "options.role is missing: it names the role whose sessions recipients are given"
    ]


def test_a_path_that_no_policy_holds_says_so():
    (fault,) = check_dir(OPTIONS, parse_location(f"s3://lake/{'x' * 1000}"))

    assert "too long" in fault


@each_case(
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


@each_case(
    ("options", "bucket", "path_style"),
    [
        ({}, "lake", False),
        ({}, "lake.example.org", True),
        ({}, "la_ke", True),
        ({"endpoint": "https://vpce"}, "lake", True),
        ({"endpoint": "https://vpce", "accessPoint": ACCESS_POINT}, "lake-s3alias", False),
        ({"accessPoint": ACCESS_POINT}, "lake.example.org", False),
    ],
)
def test_the_bucket_is_in_the_hosts_name_where_that_can_work(options, bucket, path_style):
    assert parse(options).endpoints(bucket).path_style is path_style


def test_urls_are_signed_with_any_identity_and_without_a_role():
    for options in ({}, OPTIONS, {"region": "eu-west-1", "identity": {"kind": "chain"}}):
        assert check_url(options) == []
        assert vendor.check_url(options, TABLE) == []


def test_an_access_point_of_another_region_is_told():
    assert check_url({**OPTIONS, "accessPoint": ACCESS_POINT}) == []
    (fault,) = check_url({**OPTIONS, "region": "eu-central-1", "accessPoint": ACCESS_POINT})
    assert fault.startswith("options.accessPoint lies in another region than options.region")


def test_a_life_that_sts_never_gives_is_told_before_anybody_asks():
    assert vendor.check_life(OPTIONS, timedelta(hours=12)) == []
    for life in (timedelta(hours=13), timedelta(minutes=14)):
        (fault,) = vendor.check_life(OPTIONS, life)
        assert fault == "credentials on AWS live from 15 minutes to 12 hours: change credentialLife"
    chained = {**OPTIONS, "identity": {"kind": "chain", "assumeRole": {"arn": "arn:aws:iam::1:role/x"}}}
    (fault,) = vendor.check_life(chained, timedelta(hours=2))
    assert "set credentialLife to 1h" in fault
