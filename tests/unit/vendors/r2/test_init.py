from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.domain.location import parse_location
from gateway.domain.probe import Action, Verdict
from gateway.ports import Sessions, StorageSettings
from tests.cases import each_case
from tests.fakes.sessions import FakeSessions
from tests.unit.vendors.opened_store import opened_store
from tests.unit.vendors.r2.cloudflare import ENDPOINT, NOON, PARENT, SECRET, raw_options
from vendors.r2 import vendor
from vendors.r2.issuer import ApiIssuer, LocalIssuer

HOUR = timedelta(hours=1)

TOKEN = {"value": "hush"}


def settings(sessions: Sessions | None = None, **changes: object) -> StorageSettings:
    return StorageSettings(
        name="lake",
        prefix=parse_location("s3://lake"),
        options=raw_options(**changes),
        public_url="https://gateway.example",
        sessions=sessions,
    )


async def test_storage_reads_and_issues_and_opening_it_calls_nobody():
    async with vendor.open(settings()) as storage:
        assert storage.name == "lake"
        assert storage.signer is None
        assert None not in (storage.reader, storage.issuer, storage.probe, storage.cutter)


async def test_process_that_signs_has_a_signer_without_sessions():
    async with vendor.open(settings(FakeSessions())) as storage:
        assert storage.signer is not None
        assert not storage.signer.has_sessions


async def test_settings_choose_who_signs():
    async with vendor.open(settings()) as storage:
        assert isinstance(storage.issuer, LocalIssuer)
    async with vendor.open(settings(mint="api", apiToken=TOKEN)) as storage:
        assert isinstance(storage.issuer, ApiIssuer)


@pytest.mark.parametrize("may_delete", [False, None])
async def test_parent_is_left_alone_unless_the_settings_say_otherwise(may_delete):
    revocation = None if may_delete is None else {"deleteParentToken": may_delete, "apiToken": TOKEN}

    async with vendor.open(settings(revocation=revocation)) as storage:
        assert storage.cutter is not None
        cut = await storage.cutter.cut_off("acme", NOON)

    assert not cut.done
    assert "the parent token was not deleted" not in cut.words


async def test_environment_changes_neither_address_nor_keys_of_the_reader(monkeypatch):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "ambient")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")

    async with vendor.open(settings()) as storage:
        store = await opened_store(storage.reader)
        keys = await store.credential_provider()

    assert store.config["endpoint"] == ENDPOINT
    assert store.config["region"] == "auto"
    assert store.config["skip_signature"] == "false"
    assert (keys["access_key_id"], keys["secret_access_key"], keys["token"]) == (PARENT, SECRET, None)


async def test_probe_takes_silence_for_no_proof():
    async with vendor.open(settings(endpoint="http://127.0.0.1:1")) as storage:
        assert storage.probe is not None
        attempt = await storage.probe.attempt(None, Action.LIST, storage.prefix, "sales")

    assert attempt.verdict is Verdict.FAILED


@each_case(("bucket", "is_one"), [("lake", True), ("a-1", True), ("la.ke", False), ("la_ke", False)])
def test_name_that_no_bucket_on_r2_has_is_told(bucket, is_one):
    table = parse_location(f"s3://{bucket}/t")

    assert (vendor.check_dir(raw_options(), table) == []) is is_one
    assert (vendor.check_url(raw_options(), table) == []) is is_one


def test_options_are_checked():
    assert vendor.check(raw_options()) == []
    assert vendor.check({})
    assert vendor.schemes == {"s3"}
