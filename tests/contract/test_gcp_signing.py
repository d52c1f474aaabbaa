"""The contract on signing, over each way in which URLs of Google Cloud Storage are signed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

import pytest
import pytest_asyncio

from gateway.domain.file_path import Paths
from gateway.domain.window import Window
from gateway.errors import Unavailable, Unsupported
from tests.components import FAKE_GCS_SERVER, GCP_DOUBLE
from tests.contract.gcp_signing import GcpUrlHarness, account, email, key_of, opened_to_sign
from tests.contract.vendor import SignerContract, signed

pytestmark = [
    pytest.mark.integration,
    pytest.mark.system,
    pytest.mark.component(GCP_DOUBLE, FAKE_GCS_SERVER),
]

HOUR = timedelta(hours=1)
SECRET = "bGoa+V7g/yqDXvKRqq+JTFn4uQZbPiQJo4pf9RzJ"


class GcpSignerContract(SignerContract):
    """What Google Cloud Storage adds to the contract."""

    async def test_url_works_until_the_second_that_is_reported_and_no_longer(self, harness):
        table = harness.location("ends")
        await harness.put(table, "a", b"rows")
        now = datetime.now(UTC).replace(microsecond=0)
        window = Window(now, now + HOUR / 4, now + HOUR)
        signatures = await harness.storage.signer.sign(table, Paths.of(["a"]), window)
        (url,) = await signed(harness, table, "a", started_at=now)

        assert signatures.expires_at == now + HOUR
        for offset, status in ((HOUR - timedelta(minutes=1), 200), (HOUR + timedelta(seconds=1), 400)):
            harness.cloud.clock.offset = offset
            assert (await harness.fetch(url)).status == status

    async def test_path_that_a_client_spells_otherwise_is_refused(self, harness):
        table = harness.location("spelling")
        await harness.put(table, "date=1/a", b"rows")
        (url,) = await signed(harness, table, "date=1/a")

        assert "/date%3D1/a?" in url
        assert (await harness.fetch(url)).status == 200
        assert (await harness.fetch(url.replace("%3D", "="))).status == 403
        # The parameters are read, however they are spelled.
        place, _, query = url.partition("?")
        assert (await harness.fetch(f"{place}?{unquote(query)}")).status == 200

    async def test_urls_of_an_account_that_is_gone_or_may_not_read_are_refused(self, harness):
        table = harness.location("roles")
        await harness.put(table, "a", b"rows")
        (url,) = await signed(harness, table, "a")
        assert (await harness.fetch(url)).status == 200

        account(harness.cloud, "gateway", reads=False)
        account(harness.cloud, "sharer", reads=False)
        assert (await harness.fetch(url)).status == 403


class TestByKey(GcpSignerContract):
    @pytest_asyncio.fixture
    async def harness(self, gcp) -> AsyncIterator[GcpUrlHarness]:
        identity = key_of(gcp, account(gcp, "gateway"))
        async with opened_to_sign(gcp, {"identity": identity}) as harness:
            yield harness

    async def test_nobody_is_asked(self, harness):
        await signed(harness, harness.location("t"), "a", "b")

        assert harness.cloud.decisions == []
        assert harness.cloud.blobs.requests == []

    async def test_url_by_another_key_is_refused(self, harness):
        table = harness.location("keys")
        await harness.put(table, "a", b"rows")
        (url,) = await signed(harness, table, "a")
        assert (await harness.fetch(url)).status == 200

        # The same account, after its key was replaced.
        account(harness.cloud, "gateway")
        assert (await harness.fetch(url)).status == 403


class TestByReplacedKeyFile:
    async def test_key_that_takes_the_place_of_another_signs_from_then_on(self, gcp, tmp_path):
        file = tmp_path / "key.json"
        file.write_text(json.dumps(gcp.identity.key_file(account(gcp, "gateway"))))
        identity = {"kind": "serviceAccount", "keyFile": str(file)}
        async with opened_to_sign(gcp, {"identity": identity}) as harness:
            table = harness.location("replaced")
            await harness.put(table, "a", b"rows")
            (old,) = await signed(harness, table, "a")
            file.write_text(json.dumps(gcp.identity.key_file(account(gcp, "gateway"))))
            (new,) = await signed(harness, table, "a")

            assert (await harness.fetch(old)).status == 403
            assert (await harness.fetch(new)).status == 200


class TestByHmacKey(GcpSignerContract):
    @pytest_asyncio.fixture
    async def harness(self, gcp) -> AsyncIterator[GcpUrlHarness]:
        account(gcp, "sharer")
        gcp.hmac_keys["GOOG1EXAMPLE"] = (SECRET, email("sharer"))
        options = {
            "identity": key_of(gcp, account(gcp, "gateway", reads=False)),
            "signing": {"kind": "hmac", "accessId": "GOOG1EXAMPLE", "secret": {"value": SECRET}},
        }
        async with opened_to_sign(gcp, options) as harness:
            yield harness

    async def test_nobody_is_asked(self, harness):
        await signed(harness, harness.location("t"), "a", "b")

        assert harness.cloud.blobs.requests == []

    async def test_url_by_another_secret_is_refused(self, harness):
        table = harness.location("secrets")
        await harness.put(table, "a", b"rows")
        (url,) = await signed(harness, table, "a")
        assert (await harness.fetch(url)).status == 200

        harness.cloud.hmac_keys["GOOG1EXAMPLE"] = ("another", email("sharer"))
        assert (await harness.fetch(url)).status == 403


@pytest.fixture
def impersonating(gcp) -> dict[str, object]:
    """Return the options of a gateway that reads and signs as another account, and may nothing itself."""
    account(gcp, "sharer")
    identity = key_of(gcp, account(gcp, "gateway", "sharer", reads=False))
    return {"identity": {**identity, "impersonate": {"serviceAccount": email("sharer")}}}


class TestByGoogle(GcpSignerContract):
    @pytest.fixture
    def waits(self) -> list[float]:
        """How many seconds the gateway has waited, each time."""
        return []

    @pytest_asyncio.fixture
    async def harness(self, gcp, impersonating, waits) -> AsyncIterator[GcpUrlHarness]:
        async def sleep(seconds: float) -> None:
            waits.append(seconds)
            gcp.clock.offset += timedelta(seconds=seconds)

        async with opened_to_sign(gcp, impersonating, sleep) as harness:
            yield harness

    async def test_files_are_signed_in_batches_and_each_once(self, harness):
        names = [f"part-{number}" for number in range(250)]

        urls = await signed(harness, harness.location("t"), *names, *names[:50])

        blobs = harness.cloud.blobs
        assert sorted(blobs.requests) == [50, 100, 100]
        assert len(blobs.signed) == len(set(blobs.signed)) == 250
        assert urls[250:] == urls[:50]

    async def test_single_file_is_a_single_call(self, harness):
        await signed(harness, harness.location("t"), "a")

        assert harness.cloud.blobs.requests == [1]

    async def test_without_batches_files_are_signed_one_by_one(self, harness):
        table = harness.location("single")
        names = [f"part-{number}" for number in range(12)]
        for name in names:
            await harness.put(table, name, name.encode())
        harness.cloud.blobs.takes_batches = False

        urls = await signed(harness, table, *names)

        assert harness.cloud.blobs.requests == [12, *[1] * 12]
        assert [(await harness.fetch(url)).body.decode() for url in urls] == names

    @pytest.mark.parametrize("status", [500, 503])
    async def test_half_of_a_batch_that_fails_in_passing_shifts_no_signature(self, harness, status):
        table = harness.location("halves")
        names = [f"part-{number}" for number in range(20)]
        for name in names:
            await harness.put(table, name, name.encode())
        harness.cloud.blobs.spoil = lambda number: status if number < 20 and number % 2 else None

        urls = await signed(harness, table, *names)

        assert harness.cloud.blobs.requests == [20, 10]
        assert [(await harness.fetch(url)).body.decode() for url in urls] == names

    async def test_half_of_a_batch_that_keeps_failing_gives_nothing(self, harness):
        harness.cloud.blobs.spoil = lambda number: 500 if number % 2 else None

        with pytest.raises(Unavailable):
            await signed(harness, harness.location("t"), *map(str, range(20)))

    async def test_throttling_amid_a_page_costs_time_and_no_signature_twice(self, harness, waits):
        blobs = harness.cloud.blobs
        blobs.spoil = lambda number: 429 if number == 150 else None
        table = harness.location("throttled")
        names = [f"part-{number}" for number in range(300)]
        for name in (names[0], names[150], names[299]):
            await harness.put(table, name, name.encode())

        urls = await signed(harness, table, *names)

        assert sorted(blobs.requests) == [1, 100, 100, 100]
        assert len(blobs.signed) == len(set(blobs.signed)) == 300
        assert [wait // 1 for wait in waits] in ([6], [7])
        for number in (0, 150, 299):
            assert (await harness.fetch(urls[number])).body.decode() == names[number]

    async def test_throttling_that_goes_on_says_how_long_to_wait_and_is_heeded(self, harness, waits):
        blobs = harness.cloud.blobs
        blobs.spoil = lambda number: 429 if number >= 50 else None
        # One batch: of several, some may still be on their way when the first has failed.
        table, names = harness.location("t"), [str(number) for number in range(100)]
        now = datetime.now(UTC).replace(microsecond=0)
        with pytest.raises(Unavailable) as caught:
            await signed(harness, table, *names, started_at=now)
        assert caught.value.retry_after is not None
        assert timedelta(seconds=6) < caught.value.retry_after <= timedelta(seconds=7)
        assert blobs.requests == [100, 50, 50]
        assert len(waits) == 2

        blobs.spoil = lambda _: None
        assert len(await signed(harness, table, *names, started_at=now)) == 100
        assert blobs.requests == [100, 50, 50, 50]
        assert len(waits) == 3

    async def test_url_outlives_the_turn_of_googles_key_by_as_long_as_it_is_said_to_live(self, harness):
        table = harness.location("turn")
        await harness.put(table, "a", b"rows")
        now = datetime.now(UTC).replace(microsecond=0)
        window = Window(now, now + HOUR * 5, now + HOUR * 20)
        signatures = await harness.storage.signer.sign(table, Paths.of(["a"]), window)
        url = f"{signatures.origin}a?{signatures.query}{signatures.signatures.decode()}"
        harness.cloud.blobs.rotate(email("sharer"))

        assert signatures.expires_at == now + HOUR * 12
        harness.cloud.clock.offset = HOUR * 12 - timedelta(minutes=1)
        assert (await harness.fetch(url)).status == 200
        harness.cloud.clock.offset = HOUR * 12 + timedelta(minutes=1)
        assert (await harness.fetch(url)).status == 400

    async def test_key_that_turns_between_two_pages_is_believed_for_both(self, harness):
        table = harness.location("pages")
        now = datetime.now(UTC).replace(microsecond=0)
        for name in ("a", "b"):
            await harness.put(table, name, name.encode())
        (first,) = await signed(harness, table, "a", started_at=now)
        harness.cloud.blobs.rotate(email("sharer"))
        (second,) = await signed(harness, table, "b", started_at=now)

        assert [(await harness.fetch(url)).status for url in (first, second)] == [200, 200]

    async def test_life_far_beyond_what_google_promises_is_refused(self, harness):
        now = datetime.now(UTC).replace(microsecond=0)
        window = Window(now, now + HOUR * 12, now + HOUR * 48)

        with pytest.raises(Unsupported):
            await harness.storage.signer.sign(harness.location("t"), Paths.of(["a"]), window)

    async def test_account_that_may_not_sign_as_the_other_is_told_to_the_operator(self, harness, caplog):
        gateway = harness.cloud.identity.account(email("gateway"))
        harness.cloud.identity.register(replace(gateway, may_impersonate=()))

        for names in (["a"], ["a", "b"]):
            with pytest.raises(Unavailable):
                await signed(harness, harness.location("t"), *names)
        assert caplog.text.count(f"signBlob as {email('sharer')} was refused: 403 PERMISSION_DENIED") == 2

    async def test_many_pages_at_once_are_all_signed(self, harness):
        table = harness.location("many")
        pages = [[f"{page}-{number}" for number in range(30)] for page in range(20)]

        urls = await asyncio.gather(*(signed(harness, table, *page) for page in pages))

        for name, url in ((pages[0][0], urls[0][0]), (pages[19][29], urls[19][29])):
            await harness.put(table, name, name.encode())
            assert (await harness.fetch(url)).body.decode() == name


class TestByGoogleAsAnotherAccount:
    async def test_account_that_is_named_for_signing_is_signed_as(self, gcp):
        account(gcp, "sharer")
        options = {
            "identity": key_of(gcp, account(gcp, "gateway", "sharer", reads=False)),
            "signing": {"kind": "signBlob", "serviceAccount": email("sharer")},
        }
        async with opened_to_sign(gcp, options) as harness:
            table = harness.location("named")
            await harness.put(table, "a", b"rows")
            (url,) = await signed(harness, table, "a")

            assert "X-Goog-Credential=sharer%40test.iam" in url
            assert (await harness.fetch(url)).body == b"rows"
