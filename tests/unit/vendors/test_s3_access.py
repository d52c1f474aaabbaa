from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import TypeAdapter

from gateway.domain.credential import AwsTempCredentials, Credential, GcpOauthToken
from gateway.errors import Unavailable, Unsupported
from vendors.boto_identity import BotoEndpoint, BotoIdentity
from vendors.boto_options import AnyIdentity, AwsIdentity
from vendors.s3_access import S3Access, open_threads

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
KEYS = {"kind": "keys", "accessKeyId": "AKIA1", "secretAccessKey": {"value": "secret"}}
CREDENTIAL = Credential(
    id="K1",
    secret=AwsTempCredentials(access_key_id="K1", secret_access_key="s1", session_token="t1"),
    expires_at=NOON + timedelta(hours=1),
)


@pytest.fixture(autouse=True)
def ambient(monkeypatch):
    """Put into the environment what obstore would take from there."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://ambient.example")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://ambient.example")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    monkeypatch.setenv("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true")
    monkeypatch.setenv("AWS_REGION", "ap-south-1")
    monkeypatch.setenv("AWS_S3_EXPRESS", "true")


@pytest.fixture
def open_access():
    with ThreadPoolExecutor(1) as threads:

        def open_access(identity: dict[str, Any] = KEYS, bucket: str = "lake", **endpoint: Any) -> S3Access:
            adapter: TypeAdapter[AnyIdentity] = TypeAdapter(AwsIdentity)
            place = BotoEndpoint(**{"region": "eu-west-1", **endpoint})
            own = BotoIdentity(adapter.validate_python(identity), place)
            return S3Access(bucket, place, own, threads, lambda: NOON)

        yield open_access


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ({"path_style": False}, "https://lake.s3.eu-west-1.amazonaws.com"),
        ({"path_style": True}, "https://s3.eu-west-1.amazonaws.com"),
        ({"region": "cn-north-1"}, "https://s3.cn-north-1.amazonaws.com.cn"),
        ({"s3": "http://minio:9000"}, "http://minio:9000"),
        ({"s3": "https://store.example", "path_style": False}, "https://lake.store.example"),
    ],
)
async def test_a_store_is_where_the_entry_says_and_not_the_environment(open_access, endpoint, url):
    config = (await open_access(**endpoint)._open_own()).config

    assert config["endpoint"] == config["endpoint_url_s3"] == url
    assert config["region"] == endpoint.get("region", "eu-west-1")
    assert str(config["skip_signature"]).lower() == "false"
    assert str(config["s3_express"]).lower() == "false"
    assert (
        str(config["virtual_hosted_style_request"]).lower()
        == str(not endpoint.get("path_style", True)).lower()
    )


async def test_the_gateway_signs_with_its_own_keys_and_is_asked_for_them_again_soon(open_access):
    store = await open_access()._open_own()

    assert await store.credential_provider() == {
        "access_key_id": "AKIA1",
        "secret_access_key": "secret",
        "token": None,
        "expires_at": NOON + timedelta(minutes=6),
    }


async def test_a_credential_is_used_as_it_is(open_access):
    store = open_access()._open_with(CREDENTIAL)

    assert await store.credential_provider() == {
        "access_key_id": "K1",
        "secret_access_key": "s1",
        "token": "t1",
        "expires_at": CREDENTIAL.expires_at,
    }


def test_a_credential_of_another_kind_is_refused(open_access):
    other = Credential(id="x", secret=GcpOauthToken(oauth_token="t"), expires_at=NOON)

    with pytest.raises(Unsupported):
        open_access()._open_with(other)


async def test_keys_that_cannot_be_read_are_our_fault_and_only_the_log_names_the_file(
    open_access, tmp_path, caplog
):
    missing = {**KEYS, "secretAccessKey": {"file": str(tmp_path / "gone")}}
    store = await open_access(missing)._open_own()

    with pytest.raises(Unavailable, match="own identity") as raised:
        await store.credential_provider()

    assert raised.value.__suppress_context__
    assert "gone" not in raised.value.message
    assert f"the file {tmp_path / 'gone'} cannot be read: No such file or directory" in caplog.text


async def test_a_ca_file_that_cannot_be_read_is_no_missing_table(open_access, tmp_path):
    with pytest.raises(Unavailable):
        await open_access(s3="https://store", ca_file=str(tmp_path / "gone"))._open_own()


def test_threads_are_closed_with_their_storage():
    with open_threads("lake") as threads:
        assert threads.submit(lambda: 1).result() == 1

    with pytest.raises(RuntimeError):
        threads.submit(lambda: 1)
