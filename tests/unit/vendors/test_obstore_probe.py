from __future__ import annotations

from datetime import UTC, datetime

import obstore
import pytest
from obstore.exceptions import PermissionDeniedError
from obstore.store import MemoryStore

from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.domain.location import parse_location
from gateway.domain.probe import Action, Attempt, Verdict
from vendors.obstore_error import StoreRefused, judge
from vendors.obstore_probe import MOST_NAMES, ObstoreProbe

TABLE = parse_location("s3://lake/t")
ROOT = parse_location("s3://lake")
CREDENTIAL = Credential(
    id="k",
    secret=AwsTempCredentials(access_key_id="k", secret_access_key="s", session_token="t"),
    expires_at=datetime(2026, 5, 1, tzinfo=UTC),
)
DENIED = PermissionDeniedError(
    "Server returned non-2xx status code: 403 Forbidden: <Code>AccessDenied</Code>"
)


@pytest.fixture
def own():
    store = MemoryStore()
    for key in ("t/x", "t/_delta_log/0.json", "t2/x"):
        obstore.put(store, key, b"content")
    return store


@pytest.fixture
def probe(own):
    return ObstoreProbe(own, _refused)


def _refused(_: Credential) -> MemoryStore:
    raise DENIED


async def test_without_a_credential_the_storage_itself_acts(probe, own):
    assert await probe.attempt(None, Action.READ, TABLE, "x") == Attempt(verdict=Verdict.ALLOWED)
    assert await probe.attempt(None, Action.WRITE, TABLE, "new") == Attempt(verdict=Verdict.ALLOWED)
    assert obstore.get(own, "t/new").bytes() == b""
    assert await probe.attempt(None, Action.DELETE, TABLE, "new") == Attempt(verdict=Verdict.ALLOWED)
    assert (await probe.attempt(None, Action.READ, TABLE, "new")).verdict is Verdict.MISSING


@pytest.mark.parametrize("action", list(Action))
async def test_with_a_credential_what_it_opens_is_used(probe, action):
    attempt = await probe.attempt(CREDENTIAL, action, TABLE, "")

    assert attempt == Attempt(verdict=Verdict.DENIED, detail="403 AccessDenied")


async def test_a_listing_names_keys_relative_to_its_location(probe):
    assert (await probe.attempt(None, Action.LIST, TABLE, "")).names == ("_delta_log/0.json", "x")
    assert (await probe.attempt(None, Action.LIST, TABLE, "_delta_log/")).names == ("_delta_log/0.json",)
    assert (await probe.attempt(None, Action.LIST, ROOT, "")).names == ("t/_delta_log/0.json", "t/x", "t2/x")


async def test_a_prefix_that_obstore_would_change_proves_nothing(probe):
    attempt = await probe.attempt(None, Action.LIST, ROOT, "t")

    assert attempt.verdict is Verdict.FAILED
    assert attempt.names == ()


async def test_a_listing_of_keys_takes_any_prefix(own):
    asked = []

    async def list_keys(credential: Credential | None, prefix: str) -> list[str]:
        asked.append((credential, prefix))
        return ["t2/x", "t/x"]

    probe = ObstoreProbe(own, _refused, list_keys=list_keys)
    attempt = await probe.attempt(CREDENTIAL, Action.LIST, ROOT, "t")

    assert asked == [(CREDENTIAL, "t")]
    assert attempt == Attempt(verdict=Verdict.ALLOWED, names=("t/x", "t2/x"))


@pytest.mark.parametrize(
    ("code", "verdict"), [("AccessDenied", Verdict.DENIED), ("ExpiredToken", Verdict.FAILED)]
)
async def test_a_listing_that_is_refused_is_judged_by_its_code(own, code, verdict):
    async def list_keys(credential: Credential | None, prefix: str) -> list[str]:
        raise StoreRefused(judge("403", code))

    probe = ObstoreProbe(own, _refused, list_keys=list_keys)
    attempt = await probe.attempt(CREDENTIAL, Action.LIST, ROOT, "t")

    assert attempt == Attempt(verdict=verdict, detail=f"403 {code}")


async def test_what_nobody_expected_is_a_failure_and_not_a_denial(own):
    async def fail() -> MemoryStore:
        raise RuntimeError("SECRET")

    attempt = await ObstoreProbe(fail, _refused).attempt(None, Action.READ, TABLE, "x")

    assert attempt == Attempt(verdict=Verdict.FAILED, detail="RuntimeError")


async def test_a_long_listing_is_cut():
    store = MemoryStore()
    for number in range(MOST_NAMES + 5):
        obstore.put(store, f"t/{number:05}", b"")

    attempt = await ObstoreProbe(store, _refused).attempt(None, Action.LIST, TABLE, "")

    assert len(attempt.names) == MOST_NAMES
