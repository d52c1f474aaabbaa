"""URLs into an Azure storage account, fetched from Azurite and from a verifying double, which both refuse."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

import pytest
import pytest_asyncio

from gateway.domain.location import Location
from gateway.errors import Unavailable
from gateway.ports import utcnow
from tests.certificates import new_authority
from tests.components import AZURE_DOUBLE, AZURITE
from tests.contract.azure_signing import (
    CONTAINER,
    LIFE,
    AzureUrlHarness,
    account_key,
    open_urls,
    window_from,
)
from tests.contract.vendor import REFUSED, ReaderContract, SignerContract
from tests.doubles.azure import StorageAccount, running_azure
from tests.doubles.azure_oauth import MicrosoftLogin, Principal, running_login
from tests.doubles.server import Clock
from tests.stores.azurite import ACCOUNT, Azurite, running_azurite
from vendors.azure.blob_sas import BlobSas
from vendors.azure.delegation_key import DelegationKey
from vendors.azure.sas import SasResource
from vendors.azure.session_key import unpack

MINUTE = timedelta(minutes=1)
# AT-46
SKEW = timedelta(minutes=5)
BEHIND_AND_AHEAD = pytest.mark.parametrize("skew", [-SKEW, SKEW], ids=["store behind", "store ahead"])
FOREVER = "2099-01-01T00:00:00Z"

NOBODY = "11111111-1111-1111-1111-111111111111"
Change = dict[str, str | None]
CHANGES: tuple[Change, ...] = (
    {"sp": "rl"},
    {"sp": "rw"},
    {"sp": "rcwd"},
    {"se": FOREVER},
    {"st": "2020-01-01T00:00:00Z"},
    {"sv": "2020-12-06"},
    {"sr": "c"},
    {"sr": "d", "sdd": "1"},
    {"sip": "0.0.0.0-255.255.255.255"},
    {"rscd": "attachment"},
    {"spr": "http"},
)
OTHER_KEYS: tuple[Change, ...] = (
    {"ske": FOREVER},
    {"skt": "2020-01-01T00:00:00Z"},
    {"skoid": NOBODY},
    {"sktid": NOBODY},
    dict.fromkeys(("skoid", "sktid", "skt", "ske", "sks", "skv")),
)


def changed(url: str, **changes: str | None) -> str:
    """Return the URL with other parameters, and without those that are None."""
    place, _, query = url.partition("?")
    fields = {**dict(parse_qsl(query, strict_parsing=True)), **changes}
    kept = {name: value for name, value in fields.items() if value is not None}
    return f"{place}?{urlencode(kept, quote_via=quote)}"


def parameters(url: str) -> dict[str, str]:
    return dict(parse_qsl(url.partition("?")[2], strict_parsing=True))


def moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


async def shared(harness: AzureUrlHarness, **arguments) -> str:
    """Return a URL of a file that no other test uses."""
    table = harness.location(f"{secrets.token_hex(4)}/orders")
    await harness.put(table, "part-0", b"0123456789")
    await harness.put(table, "part-1", b"secret")
    (url,) = await harness.sign(table, "part-0", **arguments)
    return url


async def status(harness: AzureUrlHarness, url: str, method: str = "GET") -> int:
    return (await harness.fetch(url, method)).status


class UrlContract(SignerContract):
    """Tests over a fixture ``harness``, for what only Azure has, whatever its URLs are signed with."""

    async def test_url_that_asks_for_more_than_was_signed_is_refused(self, harness):
        url = await shared(harness)

        assert await status(harness, changed(url)) == 200
        for change in CHANGES:
            assert await status(harness, changed(url, **change)) in REFUSED, change

    async def test_signature_of_one_blob_opens_no_other(self, harness):
        url = await shared(harness)
        query = url.partition("?")[2]

        for path in ("part-1", "part-0/x", "part-", "part-0%20", "x/part-0", "Part-0"):
            other = f"{url.partition('?')[0].removesuffix('part-0')}{path}?{query}"
            assert await status(harness, other) == 403, path

    async def test_url_writes_deletes_and_lists_nothing(self, harness):
        url = await shared(harness)
        container, query = url.partition(f"/{CONTAINER}/")[0] + f"/{CONTAINER}", url.partition("?")[2]

        for method in ("PUT", "DELETE"):
            assert await status(harness, url, method) == 403
        for extra in ("comp=metadata", "comp=block&blockid=AAAA", "comp=properties"):
            assert await status(harness, f"{url}&{extra}", "PUT") == 403
        assert await status(harness, f"{container}?restype=container&comp=list&{query}") == 403
        assert (await harness.fetch(url)).body == b"0123456789"

    async def test_reported_expiration_is_the_one_in_the_url(self, harness):
        """AT-36."""
        table, window = harness.location("t"), window_from(utcnow())
        (url,) = await harness.sign(table, "a", window=window)

        assert moment(parameters(url)["se"]) == window.expires_at

    async def test_url_that_is_not_valid_yet_is_refused(self, harness):
        future = window_from(utcnow() + timedelta(minutes=10))

        assert await status(harness, await shared(harness, window=future)) == 403


class DelegatedContract(UrlContract):
    """Tests over a fixture ``harness`` whose URLs are signed with keys that the account lends."""

    async def test_url_is_signed_with_a_key_that_the_account_lent(self, harness):
        found = parameters(await shared(harness))

        assert {"skoid", "sktid", "skt", "ske", "sks", "skv"} <= set(found)
        assert moment(found["st"]) >= moment(found["skt"])

    async def test_url_that_has_expired_is_refused(self, harness):
        now, past = window_from(utcnow()), window_from(utcnow() - LIFE - MINUTE)
        assert await status(harness, await shared(harness, window=now)) == 200
        # No account lends a key for a time that is over; a living one leaves it to the URL's own end.
        harness.sessions.minted[past] = harness.sessions.minted[now]

        assert await status(harness, await shared(harness, window=past)) == 403

    async def test_url_with_another_key_is_refused(self, harness):
        url = await shared(harness)

        assert await status(harness, changed(url)) == 200
        for change in OTHER_KEYS:
            assert await status(harness, changed(url, **change)) == 403, change

    async def test_key_past_its_end_is_refused_whatever_the_url_says(self, harness, lent_before):
        """AT-37: such a URL is never made, and the store would not take it."""
        ended = await lent_before(harness, utcnow() - 2 * LIFE)
        table, window = harness.location(secrets.token_hex(4)), window_from(utcnow())
        await harness.put(table, "a", b"rows")
        (url,) = await harness.sign(table, "a", window=window)
        living = unpack(harness.sessions.minted[window])

        assert living.expires_at > utcnow() > ended.expires_at
        assert await status(harness, outliving(url, table, living)) == 200
        assert await status(harness, outliving(url, table, ended)) == 403


def outliving(url: str, table: Location, key: DelegationKey) -> str:
    """Return the URL of a blob as if it were still valid for half an hour, whatever the key is."""
    place, _, _ = url.partition("?")
    sas = BlobSas.of(
        SasResource(account=ACCOUNT, container=CONTAINER, path=table.path),
        key,
        starts_at=key.starts_at,
        expires_at=utcnow() + LIFE / 2,
    )
    return f"{place}?{sas.query}{sas.sign(place.rpartition('/')[2].encode()).decode()}"


class ClockContract:
    """Of a store whose clock a test can move."""

    @BEHIND_AND_AHEAD
    async def test_url_works_at_once_and_ends_when_it_says(self, azure, harness, skew):
        """AT-46, AT-36."""
        azure.clock.offset = skew
        url = await shared(harness)
        ends_at = moment(parameters(url)["se"])

        assert await status(harness, url) == 200
        azure.clock.offset = ends_at - MINUTE - utcnow()
        assert await status(harness, url) == 200
        azure.clock.offset = ends_at + MINUTE - utcnow()
        assert await status(harness, url) == 403


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """Azurite over TLS, and a login whose tokens it takes."""

    azurite: Azurite
    login: MicrosoftLogin
    ca: Path
    gateway: Principal = field(default_factory=lambda: Principal(secret="its-secret"))


def delegating(login: MicrosoftLogin, principal: Principal, endpoint: str) -> dict[str, object]:
    return {
        "identity": {
            "kind": "clientSecret",
            "tenantId": login.tenant,
            "clientId": principal.client_id,
            "clientSecret": {"value": "its-secret"},
        },
        "authority": login.origin,
        "blobEndpoint": endpoint,
    }


@pytest.fixture(scope="module")
def tenant(tmp_path_factory) -> Iterator[Tenant]:
    directory = tmp_path_factory.mktemp("azurite-tls")
    authority = new_authority(directory)
    with (
        running_azurite(directory, authority.issue("azurite")) as azurite,
        running_login(Clock(), authority.issue("login")) as login,
    ):
        made = Tenant(azurite=azurite, login=login, ca=authority.ca)
        login.register(made.gateway)
        yield made


@pytest.mark.integration
@pytest.mark.system
@pytest.mark.component(AZURITE)
class TestDelegatedByAzurite(DelegatedContract):
    @pytest_asyncio.fixture
    async def harness(self, tenant: Tenant) -> AsyncIterator[AzureUrlHarness]:
        options = delegating(tenant.login, tenant.gateway, tenant.azurite.endpoint)
        async with open_urls(tenant.azurite, options, ca=tenant.ca) as harness:
            yield harness

    @pytest.fixture
    def lent_before(self):
        """Azurite lends keys of any time."""

        async def ask(harness, start):
            window = window_from(start)
            await harness.sign(harness.location("t"), "a", window=window)
            return unpack(harness.sessions.minted[window])

        return ask


@pytest.mark.integration
@pytest.mark.system
@pytest.mark.component(AZURITE)
class TestAccountKeyOfAzurite(ReaderContract, UrlContract):
    @pytest_asyncio.fixture
    async def harness(self, azurite: Azurite) -> AsyncIterator[AzureUrlHarness]:
        options = {"identity": account_key(azurite.key), "blobEndpoint": azurite.endpoint}
        async with open_urls(azurite, options) as harness:
            yield harness

    async def test_url_of_another_key_is_refused(self, azurite, harness):
        other = {"identity": account_key(secrets.token_bytes(64)), "blobEndpoint": azurite.endpoint}
        async with open_urls(azurite, other) as forged:
            assert await status(harness, await shared(forged)) == 403


@pytest.mark.integration
@pytest.mark.system
@pytest.mark.component(AZURE_DOUBLE, AZURITE)
class TestDelegatedByTheDouble(ClockContract, DelegatedContract):
    @pytest.fixture
    def gateway(self, azure: StorageAccount) -> Principal:
        # The SDK counts a token's life by the machine's clock, which is not moved.
        azure.login.life = timedelta(days=30)
        return azure.login.register(Principal(secret="its-secret"))

    @pytest_asyncio.fixture
    async def harness(self, azure, gateway) -> AsyncIterator[AzureUrlHarness]:
        options = delegating(azure.login, gateway, azure.endpoint)
        async with open_urls(azure.azurite, options, ca=azure.ca) as harness:
            yield harness

    @pytest.fixture
    def lent_before(self, azure):
        async def ask(harness, start):
            azure.clock.offset, window = start - utcnow(), window_from(start)
            await harness.sign(harness.location("t"), "a", window=window)
            azure.clock.offset = timedelta()
            return unpack(harness.sessions.minted[window])

        return ask

    async def test_window_takes_one_key_whatever_the_number_of_files_and_tables(self, azure, harness):
        window = window_from(utcnow())
        for number in range(5):
            await harness.sign(harness.location(f"t{number}"), *map(str, range(50)), window=window)

        assert azure.keys_issued == 1

    async def test_url_of_a_clock_that_is_further_ahead_is_not_valid_yet(self, azure, harness):
        """The documented limit: by more than ``clockSkew`` nothing is promised."""
        azure.clock.offset = -SKEW - MINUTE

        assert await status(harness, await shared(harness)) == 403

    @BEHIND_AND_AHEAD
    async def test_url_that_would_outlive_the_longest_key_ends_with_it(self, azure, harness, skew):
        """AT-37."""
        azure.clock.offset = skew
        window = window_from(utcnow(), timedelta(days=7))
        url = await shared(harness, window=window)
        found = parameters(url)
        ends_at = moment(found["ske"])

        assert moment(found["se"]) == ends_at < window.expires_at
        azure.clock.offset = ends_at - MINUTE - utcnow()
        assert await status(harness, url) == 200
        azure.clock.offset = ends_at + MINUTE - utcnow()
        assert await status(harness, url) == 403

    async def test_revoked_keys_end_every_url(self, azure, harness):
        url = await shared(harness)
        assert await status(harness, url) == 200
        azure.revoke_delegation_keys()

        assert await status(harness, url) == 403

    async def test_url_opens_nothing_that_its_maker_may_not_read(self, azure, gateway, harness):
        url = await shared(harness)
        azure.login.forget(gateway)

        assert await status(harness, url) == 403

    async def test_account_that_lends_no_key_is_unavailable_and_asks_for_patience(self, azure, harness):
        azure.faults.add(503, "7")
        with pytest.raises(Unavailable) as raised:
            await harness.sign(harness.location("t"), "a")

        assert raised.value.retry_after == timedelta(seconds=7)
        assert await harness.sign(harness.location("t"), "a")

    async def test_identity_without_the_role_signs_nothing(self, azure):
        reader = azure.login.register(Principal(secret="its-secret", may_delegate=False))
        options = delegating(azure.login, reader, azure.endpoint)
        async with open_urls(azure.azurite, options, ca=azure.ca) as harness:
            with pytest.raises(Unavailable):
                await harness.sign(harness.location("t"), "a")

    async def test_account_without_directories_has_urls(self, azurite, tmp_path):
        with running_azure(tmp_path / "flat", azurite, is_hierarchical=False) as flat:
            gateway = flat.login.register(Principal(secret="its-secret"))
            options = {
                **delegating(flat.login, gateway, flat.endpoint),
                "hierarchicalNamespace": False,
            }
            async with open_urls(azurite, options, ca=flat.ca) as harness:
                assert await status(harness, await shared(harness)) == 200


@pytest.mark.integration
@pytest.mark.system
@pytest.mark.component(AZURE_DOUBLE, AZURITE)
class TestAccountKeyOfTheDouble(ClockContract, UrlContract):
    @pytest_asyncio.fixture
    async def harness(self, azure: StorageAccount) -> AsyncIterator[AzureUrlHarness]:
        options = {"identity": account_key(azure.own_key), "blobEndpoint": azure.endpoint}
        async with open_urls(azure.azurite, options, ca=azure.ca) as harness:
            yield harness

    async def test_replaced_key_ends_every_url(self, azure, harness):
        url = await shared(harness)
        assert await status(harness, url) == 200
        azure.own_key = secrets.token_bytes(64)

        assert await status(harness, url) == 403

    async def test_account_whose_keys_are_switched_off_refuses(self, azure, harness):
        url = await shared(harness)
        azure.allows_own_key = False

        assert await status(harness, url) == 403
