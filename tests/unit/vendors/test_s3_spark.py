from __future__ import annotations

from collections.abc import Mapping

from gateway.domain.location import parse_location
from gateway.ports import StorageSettings
from tests.cases import each_case
from vendors.aws import vendor as aws
from vendors.local import vendor as local
from vendors.r2 import vendor as r2
from vendors.s3 import vendor as s3
from vendors.s3_spark import S3Reach, S3Spark

KEYS = {"kind": "keys", "accessKeyId": "AKIA", "secretAccessKey": {"value": "hunter2"}}
ODD = ("t", "a b", "50%", "%41", "a+b", "é", "a#b", "a?b", "it's")


async def settings_of(vendor, prefix: str, options: Mapping[str, object]) -> dict[str, str]:
    assert vendor.check(options) == []
    settings = StorageSettings(
        name="lake", prefix=parse_location(prefix), options=options, public_url="http://127.0.0.1"
    )
    async with vendor.open(settings) as storage:
        found = await storage.spark.settings()
    head = f"fs.s3a.bucket.{parse_location(prefix).authority}."
    assert all(name.startswith(head) for name in found)
    return {name.removeprefix(head): value for name, value in found.items()}


async def test_keys_of_a_store_of_ones_own_are_given_for_its_bucket():
    options = {"profile": "minio", "endpoint": "http://127.0.0.1:9000", "region": "eu-1", "identity": KEYS}

    assert await settings_of(s3, "s3://lake/a", options) == {
        "endpoint": "http://127.0.0.1:9000",
        "endpoint.region": "eu-1",
        "connection.ssl.enabled": "false",
        "path.style.access": "true",
        "access.key": "AKIA",
        "secret.key": "hunter2",
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    }


async def test_session_is_given_with_its_token():
    options = {"identity": {**KEYS, "sessionToken": {"value": "session"}}, "region": "eu-central-1"}

    found = await settings_of(aws, "s3://my.lake", options)

    assert found["session.token"] == "session"
    assert found["aws.credentials.provider"].endswith(".TemporaryAWSCredentialsProvider")
    assert found["endpoint.region"] == "eu-central-1"
    assert "endpoint" not in found


async def test_standard_chain_is_left_to_the_cluster():
    found = await settings_of(aws, "s3://lake", {"identity": {"kind": "chain"}, "region": "eu-west-1"})

    assert found == {"endpoint.region": "eu-west-1", "path.style.access": "false"}


async def test_r2_is_reached_by_its_parent_token():
    options = {"accountId": "a" * 32, "identity": {**KEYS, "accessKeyId": "b" * 32}}

    found = await settings_of(r2, "s3://lake", options)

    assert found["endpoint"] == f"https://{'a' * 32}.r2.cloudflarestorage.com"
    assert (found["endpoint.region"], found["connection.ssl.enabled"]) == ("auto", "true")
    assert found["secret.key"] == "hunter2"


async def test_access_point_is_named_in_place_of_an_endpoint():
    async def find() -> S3Reach:
        return S3Reach(region="eu-1", path_style=False, access_point="arn:aws:s3:eu-1:1:accesspoint/a")

    found = await S3Spark("lake", find).settings()

    assert found["fs.s3a.bucket.lake.accesspoint.arn"] == "arn:aws:s3:eu-1:1:accesspoint/a"
    assert "fs.s3a.bucket.lake.endpoint" not in found


def test_reach_does_not_show_its_secrets():
    reach = S3Reach(
        region="eu-1", path_style=True, access_key_id="AKIA", secret_access_key="hunter2", session_token="tok"
    )

    assert "hunter2" not in repr(reach)
    assert "tok" not in repr(reach)


@each_case("name", ODD)
async def test_names_are_spelled_as_they_are(name):
    async def find() -> S3Reach:
        raise AssertionError

    assert S3Spark("lake", find).url(parse_location(f"s3n://lake/{name}/t/")) == f"s3a://lake/{name}/t"
    settings = StorageSettings(name="disk", prefix=parse_location("/data"), public_url="")
    async with local.open(settings) as storage:
        assert storage.spark is not None
        assert storage.spark.url(parse_location(f"file:///data/{name}")) == f"file:/data/{name}"
        assert await storage.spark.settings() == {}
