"""Reads that outlive their first credential, on a store that has made it void in the meantime."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta

import pytest

from gateway.ports import utcnow
from tests.components import BOTO3, DELTALAKE, DUCKDB, SEAWEEDFS
from tests.e2e.recipient_lake import (
    BUCKET,
    FILES,
    IDS,
    LOCATIONS,
    ORDERS,
    RecipientProcess,
    log_key,
    recipient,
    upload,
)
from tests.e2e.recipient_store import VoidableStore, voidable_store
from tests.fakes.credential_gateway import CredentialGateway, serving

pytestmark = pytest.mark.component(SEAWEEDFS, DELTALAKE, DUCKDB, BOTO3)

LIFE = timedelta(seconds=4)
ENGINES = ("deltalake", "polars", "duckdb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """Readers with open tables, before a store that has made void all credentials that they had."""

    store: VoidableStore
    gateway: CredentialGateway
    address: str
    # Has read the table with each engine, and the first rows of a scan.
    reader: RecipientProcess
    first_rows: int
    # The options that the library returned for the first credential.
    static: dict[str, str]
    # boto3, with the container endpoint of a gateway of its own.
    aws: RecipientProcess
    aws_gateway: CredentialGateway


@pytest.fixture(scope="module")
def expired(tmp_path_factory) -> Iterator[Expired]:
    directory = tmp_path_factory.mktemp("refresh")
    with ExitStack() as stack:
        store = stack.enter_context(voidable_store(tmp_path_factory.mktemp("store")))
        upload(store.s3, tmp_path_factory.mktemp("tables"))
        gateway, aws_gateway = _gateway(store), _gateway(store)
        stack.enter_context(serving(gateway))
        stack.enter_context(serving(aws_gateway))
        profile = directory / "reader.share"
        profile.write_text(gateway.profile)
        address = f"{profile}#{ORDERS}"
        reader = stack.enter_context(recipient())
        for engine in ENGINES:
            assert reader.call("ids", engine, address) == IDS[ORDERS]
        static = reader.call("storage_options", address)
        first_rows = reader.call("begin", address)
        env = {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": aws_gateway.container_url(ORDERS),
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": f"Bearer {aws_gateway.token}",
        }
        aws = stack.enter_context(recipient(**env))
        assert aws.call("get_object", BUCKET, log_key(ORDERS), endpoint=store.s3.endpoint) > 0
        _make_void(store, gateway, aws_gateway)
        yield Expired(
            store=store,
            gateway=gateway,
            address=address,
            reader=reader,
            first_rows=first_rows,
            static=static,
            aws=aws,
            aws_gateway=aws_gateway,
        )


def _gateway(store: VoidableStore) -> CredentialGateway:
    return CredentialGateway(
        mint=store.mint,
        tables=LOCATIONS,
        token=secrets.token_urlsafe(32),
        region=store.s3.region,
        endpoint=store.s3.endpoint,
        life=LIFE,
    )


def _make_void(store: VoidableStore, *gateways: CredentialGateway) -> None:
    """Wait until all credentials that were issued have expired, and have the store refuse them."""
    issued = [each for gateway in gateways for each in gateway.issued]
    assert all(gateway.issued for gateway in gateways)
    while any(each.expires_at > utcnow() for each in issued):
        time.sleep(0.1)
    store.make_void()
    assert not any(store.opens(each.credentials, log_key(ORDERS)) for each in issued)


@pytest.mark.parametrize("engine", ENGINES)
def test_table_opened_before_expiration_is_still_read(expired, engine):
    assert expired.reader.call("ids", engine, expired.address) == IDS[ORDERS]
    assert _different_keys(expired.gateway) > 1


def test_scan_that_outlives_its_credential_reads_the_rest(expired):
    assert expired.first_rows == len(IDS[ORDERS]) / FILES
    assert expired.reader.call("finish") == len(IDS[ORDERS]) - expired.first_rows


def test_static_options_are_refused_after_expiration(expired):
    """What is renewed above is not renewed by chance."""
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    access_key, secret, token = (expired.static[name] for name in names)
    credentials = {"AccessKeyId": access_key, "SecretAccessKey": secret, "SessionToken": token}
    assert not expired.store.opens(credentials, log_key(ORDERS))


def test_boto3_fetches_new_credentials_after_expiration(expired):
    assert expired.aws.call("get_object", BUCKET, log_key(ORDERS)) > 0
    assert _different_keys(expired.aws_gateway) > 1
    assert {issued.by for issued in expired.aws_gateway.issued} == {"aws-credentials"}


def _different_keys(gateway: CredentialGateway) -> int:
    return len({issued.credentials["AccessKeyId"] for issued in gateway.issued})
