"""Reads that outlive their first credential, on a store that has made it void in the meantime."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.ports import utcnow
from tests.components import BOTO3, DELTALAKE, DUCKDB, SEAWEEDFS
from tests.e2e.recipient_lake import BUCKET, FILES, IDS, LOCATIONS, ORDERS, log_key, recipient, upload
from tests.e2e.recipient_store import VoidableStore, voidable_store
from tests.fakes.credential_gateway import CredentialGateway, serving

pytestmark = pytest.mark.component(SEAWEEDFS)

LIFE = timedelta(seconds=4)


@dataclass(frozen=True, slots=True)
class Turning:
    """A gateway whose credentials live for seconds, before a store that can make them void."""

    store: VoidableStore
    gateway: CredentialGateway
    profile: Path

    @property
    def address(self) -> str:
        return f"{self.profile}#{ORDERS}"

    def make_void(self) -> None:
        """Wait until the time of all credentials that are out is over, and let the store know it too."""
        handed_out = list(self.gateway.issued)
        assert handed_out
        while any(issued.expires_at > utcnow() for issued in handed_out):
            time.sleep(0.1)
        self.store.make_void()
        assert not any(self.store.opens(issued.credentials, log_key(ORDERS)) for issued in handed_out)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Iterator[VoidableStore]:
    with voidable_store(tmp_path_factory.mktemp("store")) as running:
        upload(running.s3, tmp_path_factory.mktemp("tables"))
        yield running


@pytest.fixture
def turning(store, tmp_path) -> Iterator[Turning]:
    gateway = CredentialGateway(
        mint=store.mint,
        tables=LOCATIONS,
        token=secrets.token_urlsafe(32),
        region=store.s3.region,
        endpoint=store.s3.endpoint,
        life=LIFE,
    )
    with serving(gateway):
        profile = tmp_path / "reader.share"
        profile.write_text(gateway.profile)
        yield Turning(store, gateway, profile)


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("deltalake", marks=pytest.mark.component(DELTALAKE)),
        "polars",
        pytest.param("duckdb", marks=pytest.mark.component(DUCKDB)),
    ],
)
def test_what_an_engine_opened_still_reads_after_its_first_credential(turning, engine):
    with recipient() as reader:
        assert reader.call("ids", engine, turning.address) == IDS[ORDERS]

        turning.make_void()

        assert reader.call("ids", engine, turning.address) == IDS[ORDERS]
    assert _different_keys(turning.gateway) > 1


@pytest.mark.component(DELTALAKE)
def test_a_read_goes_on_in_the_middle_with_the_next_credential(turning):
    with recipient() as reader:
        first = reader.call("begin", turning.address)
        assert first == len(IDS[ORDERS]) / FILES

        turning.make_void()

        assert reader.call("finish") == len(IDS[ORDERS]) - first


def test_options_without_renewal_are_refused_after_their_time(turning):
    """What is renewed above is not renewed by chance."""
    with recipient() as reader:
        reader.call("open", turning.address)
        static = reader.call("storage_options", turning.address)

        turning.make_void()

        names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
        access_key, secret, token = (static[name] for name in names)
        credentials = {"AccessKeyId": access_key, "SecretAccessKey": secret, "SessionToken": token}
        assert not turning.store.opens(credentials, log_key(ORDERS))


@pytest.mark.component(BOTO3)
def test_boto3_asks_the_container_endpoint_again(turning):
    env = {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": turning.gateway.container_url(ORDERS),
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": f"Bearer {turning.gateway.token}",
    }
    with recipient(**env) as reader:
        endpoint = turning.store.s3.endpoint
        assert reader.call("get_object", BUCKET, log_key(ORDERS), endpoint=endpoint) > 0

        turning.make_void()

        assert reader.call("get_object", BUCKET, log_key(ORDERS)) > 0
    assert {issued.by for issued in turning.gateway.issued} == {"aws-credentials"}


def _different_keys(gateway: CredentialGateway) -> int:
    return len({issued.credentials["AccessKeyId"] for issued in gateway.issued})
