from __future__ import annotations

from urllib.parse import urlsplit

import botocore.session
import pytest

from tests.cases import each_case
from tests.unit.vendors.sdk import sdk_client
from vendors.s3_address import Place, access_point_url, aws_url, fits_host, with_label

SESSION = botocore.session.Session()
REGIONS = [
    region
    for partition in SESSION.get_available_partitions()
    for region in SESSION.get_available_regions("s3", partition)
    if "global" not in region
]


def sdk_url(bucket: str, region: str, endpoint: str = "", **s3: object) -> str:
    """Return the address that the SDK signs, without key and query."""
    client = sdk_client(region=region, access_key_id="k", secret="s", endpoint=endpoint, **s3)
    url: str = client.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "key"})
    return url.partition("/key?")[0]


def test_every_partition_is_known():
    assert {"eu-central-1", "cn-north-1", "us-gov-west-1"} < set(REGIONS)


def test_bucket_of_any_region_is_where_the_sdk_says():
    ours = {region: with_label(aws_url(region), "lake") for region in REGIONS}

    assert ours == {region: sdk_url("lake", region) for region in REGIONS}


@each_case("region", ["us-east-1", "eu-central-1", "cn-north-1", "us-gov-west-1"])
@each_case("dual_stack", [False, True])
def test_dual_stack_and_access_points_are_where_the_sdk_says(region, dual_stack):
    partition = SESSION.get_partition_for_region(region)
    arn = f"arn:{partition}:s3:{region}:123456789012:accesspoint/sales-1"
    style = {"use_dualstack_endpoint": dual_stack}

    assert with_label(aws_url(region, dual_stack=dual_stack), "lake") == sdk_url("lake", region, **style)
    assert access_point_url(arn, region, dual_stack=dual_stack) == sdk_url(arn, region, **style)


def test_access_point_is_also_reached_through_an_endpoint_of_ones_own():
    arn = "arn:aws:s3:eu-west-1:123456789012:accesspoint/sales"
    endpoint = "https://accesspoint.vpce-1a.s3.eu-west-1.vpce.amazonaws.com"

    assert access_point_url(arn, "eu-west-1", endpoint) == sdk_url(arn, "eu-west-1", endpoint)


@each_case("endpoint", ["https://s3.example", "http://s3.example:9000"])
@each_case(
    "bucket", ["lake", "la-ke", "a.b.c", "la_ke", "ab", "a" * 63, "192.168.0.1", "a-.b", "lake.example.org"]
)
def test_bucket_stands_in_the_hosts_name_where_the_sdk_puts_it(bucket, endpoint):
    in_host = urlsplit(sdk_url(bucket, "us-east-1", endpoint)).netloc.startswith(f"{bucket}.")

    assert fits_host(bucket, endpoint) is in_host


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9000", "https://10.0.0.1", "http://[::1]:9000"])
def test_nothing_stands_in_front_of_a_number(endpoint):
    assert not fits_host("lake", endpoint)
    assert urlsplit(sdk_url("lake", "us-east-1", endpoint)).path == "/lake"


@each_case(
    ("bucket", "path", "directory"),
    [
        ("", "", "/"),
        ("", "sales/orders", "/sales/orders/"),
        ("lake", "", "/lake/"),
        ("lake", "50%/a b", "/lake/50%25/a%20b/"),
    ],
)
def test_directory_has_the_bucket_where_the_host_has_not(bucket, path, directory):
    assert Place(url="https://h", bucket_in_path=bucket, region="x").directory(path) == directory
