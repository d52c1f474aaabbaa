"""Clocks that differ: what is issued works at once, and ends when we said that it would, or later.

Where we write the end ourselves (SAS, tokens that are signed here) the store holds it against its own clock.
Where the store counts a life from its own now (Google, Cloudflare's API), it is the time that passes.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

import pytest
import pytest_asyncio

from gateway.domain.credential import AzureUserDelegationSas, Credential
from gateway.domain.location import Location
from gateway.domain.scope import Scope
from gateway.errors import Unavailable
from tests.components import AZURE_DOUBLE, AZURITE, BOTO3, FAKE_GCS_SERVER, GCP_DOUBLE, R2_DOUBLE
from tests.contract.issuing import Harness
from tests.contract.test_issuing import keys
from tests.doubles.azure_oauth import Principal
from tests.doubles.r2 import ApiToken
from tests.doubles.server import Clock
from tests.integration.test_identities import (
    MovableClock,
    azure_place,
    client_secret,
    email,
    gcp_account,
    gcp_place,
    r2_place,
)

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
SKEW = timedelta(minutes=4)
# A recipient's signature may be late by 15 minutes: within them it is the credential that ends.
R2_LIFE = timedelta(minutes=8)

BEHIND_AND_AHEAD = pytest.mark.parametrize("skew", [-SKEW, SKEW], ids=["store behind", "store ahead"])

# Google leaves the life of a narrowed token out at times: it then ends with the one that it was made from.
GCP_CASES = [
    pytest.param("service account", True, -SKEW, id="service account, store behind"),
    pytest.param("service account", True, SKEW, id="service account, store ahead"),
    pytest.param("service account", False, -SKEW, id="service account, no life told, store behind"),
    pytest.param("service account", False, SKEW, id="service account, no life told, store ahead"),
    pytest.param("impersonation", True, -SKEW, id="impersonation, store behind"),
    pytest.param("impersonation", True, SKEW, id="impersonation, store ahead"),
    pytest.param("impersonation", False, -SKEW, id="impersonation, no life told, store behind"),
    pytest.param(*("impersonation", False, SKEW), id="impersonation, no life told, store ahead"),
]


async def issued(
    harness: Harness, life: timedelta = HOUR, table: Location | None = None
) -> tuple[Location, Credential]:
    assert harness.storage.issuer is not None
    if table is None:
        table = harness.location(f"base-{secrets.token_hex(4)}/orders")
        await harness.put(table, "part-0", b"rows")
    return table, await harness.storage.issuer.issue(Scope(location=table, recipient="acme", life=life))


async def opens(harness: Harness, credential: Credential, table: Location) -> bool:
    """Tell whether the store believes a credential; what is inside its scope is never denied otherwise."""
    try:
        return await harness.read(credential, table, "part-0") == b"rows"
    except Exception as exc:
        # Each recipient's SDK has an error of its own for it.
        if not _is_refusal(exc):
            raise
        return False


def _is_refusal(exc: Exception) -> bool:
    # Azure's SDK tells its code by an enumeration, whose text is another one.
    words = [str(exc), *(str(getattr(part, "value", part)) for part in exc.args)]
    return any(code in word for word in words for code in ("AuthenticationFailed", "Unauthorized"))


def set_to(clock: Clock, moment: datetime) -> None:
    clock.offset = moment - datetime.now(UTC)


@pytest.mark.system
@pytest.mark.component(AZURE_DOUBLE, AZURITE)
class TestAzure:
    @pytest.fixture
    def clock(self, azure):
        """Our clock, with which Azure's is moved on."""
        return MovableClock(azure.clock)

    @pytest_asyncio.fixture
    async def harness(self, azure, clock) -> AsyncIterator[Harness]:
        gateway = azure.login.register(Principal(secret="its-secret"))
        # The SDK counts a token's life by the machine's clock, which is not moved.
        azure.login.life = timedelta(days=1)
        identity = client_secret(azure, gateway, {"value": "its-secret"})
        async with azure_place(azure).opened(identity, clock=clock) as harness:
            yield harness

    @BEHIND_AND_AHEAD
    async def test_sas_works_at_once_and_ends_when_it_says(self, azure, harness, skew):
        azure.clock.offset = skew
        table, credential = await issued(harness)

        assert await opens(harness, credential, table)
        set_to(azure.clock, credential.expires_at - MINUTE)
        assert await opens(harness, credential, table)
        set_to(azure.clock, credential.expires_at + MINUTE)
        assert not await opens(harness, credential, table)

    async def test_sas_of_a_clock_that_is_further_ahead_is_not_valid_yet(self, azure, harness):
        """The documented limit: by more than ``clockSkew`` nothing is promised."""
        azure.clock.offset = -timedelta(minutes=6)
        table, credential = await issued(harness)

        assert not await opens(harness, credential, table)

    @BEHIND_AND_AHEAD
    async def test_sas_that_would_outlive_the_longest_key_ends_with_it(self, azure, harness, skew):
        azure.clock.offset = skew
        table, credential = await issued(harness, timedelta(days=7))
        fields = _fields(credential)

        assert credential.expires_at == _time(fields["ske"]) == _time(fields["se"])
        set_to(azure.clock, credential.expires_at - MINUTE)
        assert await opens(harness, credential, table)
        set_to(azure.clock, credential.expires_at + MINUTE)
        assert not await opens(harness, credential, table)

    async def test_sas_never_outlives_its_key_however_old_the_key_is(self, azure, harness, clock):
        """Every quarter of an hour, through the life of a key and beyond it."""
        table, credential = await issued(harness)
        signers = set()
        for _ in range(20):
            _, credential = await issued(harness, table=table)
            fields = _fields(credential)
            signers.add(fields["ske"])
            assert _time(fields["se"]) == credential.expires_at <= _time(fields["ske"])
            assert credential.expires_at - clock() > HOUR - MINUTE
            assert await opens(harness, credential, table)
            clock.move(timedelta(minutes=15))

        assert len(signers) == azure.keys_issued == 2

    async def test_key_about_to_end_signs_up_to_its_end_while_azure_gives_no_other(
        self, azure, harness, clock
    ):
        table, before = await issued(harness)
        key_ends_at = _time(_fields(before)["ske"])
        azure.faults.add(503, times=100)
        # With an hour and ten minutes left of the key, and then with forty minutes.
        for span in (timedelta(hours=2, minutes=50), timedelta(minutes=30)):
            clock.move(span)
            _, credential = await issued(harness, table=table)
            assert _fields(credential)["ske"] == _fields(before)["ske"]
            assert credential.expires_at <= key_ends_at
            assert await opens(harness, credential, table)

        assert credential.expires_at == key_ends_at
        clock.move(timedelta(minutes=41))
        assert not await opens(harness, credential, table)
        with pytest.raises(Unavailable):
            await issued(harness, table=table)
        azure.faults.pending.clear()
        _, credential = await issued(harness, table=table)
        assert credential.expires_at - clock() > HOUR - MINUTE
        assert await opens(harness, credential, table)


@pytest.mark.system
@pytest.mark.component(GCP_DOUBLE, FAKE_GCS_SERVER)
class TestGcp:
    @pytest_asyncio.fixture
    async def harness(self, gcp, request) -> AsyncIterator[Harness]:
        gcp_account(gcp, "sharer")
        key = gcp.identity.key_file(gcp_account(gcp, "gateway", "sharer"))
        identity: dict[str, Any] = {"kind": "serviceAccount", "key": {"value": json.dumps(key)}}
        if request.param == "impersonation":
            identity["impersonate"] = {"serviceAccount": email("sharer")}
        async with gcp_place(gcp).opened(identity) as harness:
            yield harness

    @pytest.mark.parametrize(("harness", "tells_expiry", "skew"), GCP_CASES, indirect=["harness"])
    async def test_token_works_at_once_and_does_not_end_before_it_was_said_to(
        self, gcp, harness, skew, tells_expiry
    ):
        gcp.identity.tells_expiry = tells_expiry
        gcp.clock.offset = skew
        table, credential = await issued(harness)
        left = credential.expires_at - datetime.now(UTC)

        assert await opens(harness, credential, table)
        gcp.clock.offset = skew + left - MINUTE
        assert await opens(harness, credential, table)
        # Google's hour is over, whatever was told of it.
        gcp.clock.offset = skew + HOUR + MINUTE
        assert not await opens(harness, credential, table)
        assert left <= HOUR


@pytest.mark.component(R2_DOUBLE, BOTO3)
class TestR2:
    @pytest.fixture
    def parent(self, r2):
        return r2.register(ApiToken(permission="object-read-only"))

    @pytest_asyncio.fixture
    async def local(self, r2, parent) -> AsyncIterator[Harness]:
        async with r2_place(r2).opened(keys(parent.keys)) as harness:
            yield harness

    @pytest_asyncio.fixture
    async def by_api(self, r2, parent) -> AsyncIterator[Harness]:
        place = r2_place(r2, mint="api", apiToken={"value": parent.value})
        async with place.opened(keys(parent.keys)) as harness:
            yield harness

    @BEHIND_AND_AHEAD
    async def test_credential_that_is_signed_here_works_at_once_and_ends_when_it_says(self, r2, local, skew):
        r2.clock.offset = skew
        table, credential = await issued(local, R2_LIFE)

        assert await opens(local, credential, table)
        set_to(r2.clock, credential.expires_at - MINUTE)
        assert await opens(local, credential, table)
        set_to(r2.clock, credential.expires_at + MINUTE)
        assert not await opens(local, credential, table)

    @BEHIND_AND_AHEAD
    async def test_credential_of_the_api_works_at_once_and_ends_when_its_life_is_over(self, r2, by_api, skew):
        r2.clock.offset = skew
        table, credential = await issued(by_api, R2_LIFE)
        left = credential.expires_at - datetime.now(UTC)

        assert await opens(by_api, credential, table)
        r2.clock.offset = skew + left - MINUTE
        assert await opens(by_api, credential, table)
        r2.clock.offset = skew + left + MINUTE
        assert not await opens(by_api, credential, table)


def _fields(credential: Credential) -> dict[str, str]:
    assert isinstance(credential.secret, AzureUserDelegationSas)
    return {name: values[0] for name, values in parse_qs(credential.secret.sas_token).items()}


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
