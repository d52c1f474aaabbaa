from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.adapters.storage_plan import PlannedStorage
from gateway.adapters.storages import OpenStorages, StorageProcess
from gateway.adapters.vendors import VendorNotFound
from gateway.config.faults import ConfigError
from gateway.domain.key import Key, Keys
from gateway.domain.location import parse_location
from gateway.ports import Storage, Vendor
from tests.fakes.sessions import FakeSessions
from tests.fakes.vendor import FakeVendor
from tests.unit.adapters.storage_configs import config, storage

KEYS = Keys(current=Key(id="k1", secret=b"s" * 32))
GRACE = timedelta(seconds=30)


class Sleep:
    """Ends when the test says so."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self._over = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        await self._over.wait()

    async def end(self) -> None:
        self._over.set()
        for _ in range(10):
            await asyncio.sleep(0)


@pytest.fixture
def vendor():
    return FakeVendor("s3", "file")


@pytest.fixture
def sleep():
    return Sleep()


def opening(vendor: FakeVendor, configuration, sleep: Sleep | None = None) -> OpenStorages:
    def find(name: str) -> Vendor:
        if name == "missing":
            raise VendorNotFound("there is no vendor 'missing'")
        return vendor

    return OpenStorages(
        configuration,
        StorageProcess(public_url="https://share.example/delta-sharing", url_keys=KEYS, grace=GRACE),
        find=find,
        sleep=sleep or Sleep(),
    )


def name_of(storages: OpenStorages, location: str) -> str | None:
    found = storages.find(parse_location(location))
    return found.name if found else None


async def test_vendors_are_opened_with_the_settings_of_their_entries(vendor):
    async with opening(vendor, config(storages=[storage("lake", "s3://lake", region="eu")])):
        (settings,) = vendor.opened

    assert (settings.name, settings.prefix) == ("lake", parse_location("s3://lake"))
    assert settings.options == {"region": "eu"}
    assert settings.public_url == "https://share.example/delta-sharing"
    assert settings.url_keys is KEYS


class Remembered:
    """Marks what it wraps."""

    def __init__(self, planned: PlannedStorage) -> None:
        self.sessions = FakeSessions()
        self.planned = planned

    def wrap(self, storage: Storage) -> Storage:
        return replace(storage, name=f"remembered {storage.name}")


async def test_what_a_process_remembers_is_given_to_the_vendor_and_put_around_what_it_opens(vendor):
    remembered: list[Remembered] = []

    def remember(planned: PlannedStorage) -> Remembered:
        remembered.append(Remembered(planned))
        return remembered[-1]

    process = StorageProcess(public_url="https://share.example", remember=remember)
    entries = [storage("a", "s3://a"), storage("b", "s3://b")]
    async with OpenStorages(config(storages=entries), process, find=lambda _: vendor) as storages:
        assert name_of(storages, "s3://a/t") == "remembered a"
        assert [settings.sessions for settings in vendor.opened] == [each.sessions for each in remembered]
        assert [each.planned.name for each in remembered] == ["a", "b"]


async def test_a_process_that_does_not_sign_gives_no_sessions(vendor):
    async with opening(vendor, config(storages=[storage("lake", "s3://lake")])):
        assert vendor.opened[0].sessions is None


async def test_longest_prefix_wins(vendor):
    entries = [
        storage("all", "s3://lake"),
        storage("a", "s3://lake/a"),
        storage("deep", "s3://lake/a/b/c"),
        storage("root", "/"),
    ]
    async with opening(vendor, config(storages=entries)) as storages:
        assert name_of(storages, "s3://lake/x") == "all"
        assert name_of(storages, "s3://lake") == "all"
        assert name_of(storages, "s3://lake/a") == "a"
        assert name_of(storages, "s3n://lake/a/b") == "a"
        assert name_of(storages, "s3a://lake/a/b/c/d/e") == "deep"
        assert name_of(storages, "file:///data") == "root"


@pytest.mark.parametrize("location", ["s3://lake/ab", "s3://lake", "s3://other/a", "gs://lake/a", "/a"])
async def test_location_that_no_prefix_covers_has_no_storage(vendor, location):
    async with opening(vendor, config(storages=[storage("a", "s3://lake/a")])) as storages:
        assert name_of(storages, location) is None


async def test_storages_are_closed_when_the_block_is_left(vendor):
    async with opening(vendor, config(storages=[storage("a", "s3://a"), storage("b", "s3://b")])):
        assert vendor.closed == []

    assert sorted(vendor.closed) == ["a", "b"]


async def test_storages_that_were_open_are_closed_when_another_fails_to_open(vendor):
    entries = [storage("a", "s3://a"), storage("b", "s3://b", fails="open")]

    with pytest.raises(OSError, match="no route"):
        async with opening(vendor, config(storages=entries)):
            pytest.fail("entered")

    assert vendor.closed == ["a"]


async def test_faulty_configuration_is_refused_with_its_faults(vendor):
    with pytest.raises(ConfigError, match=r"storages\[0\]\.vendor: there is no vendor"):
        async with opening(vendor, config(storages=[storage("a", "s3://a", "missing")])):
            pytest.fail("entered")


DIR_TABLE = {"location": "s3://a/refused", "historyShared": True, "accessModes": ["dir"]}


async def test_dir_access_that_the_vendor_cannot_give_is_refused_at_the_start(vendor):
    with pytest.raises(ConfigError, match=r"table s\.d\.t0 cannot offer dir access on the storage 'a'"):
        async with opening(vendor, config(DIR_TABLE, storages=[storage("a", "s3://a")])):
            pytest.fail("entered")

    assert vendor.opened == []


async def test_dir_access_that_the_vendor_cannot_give_is_refused_on_a_reload(vendor):
    entries = [storage("a", "s3://a")]
    async with opening(vendor, config(storages=entries)) as storages:
        with pytest.raises(ConfigError, match="cannot offer dir access"):
            await storages.reload(config(DIR_TABLE, storages=entries))
        assert name_of(storages, "s3://a/t") == "a"


async def test_a_storage_has_what_its_entry_says_of_credentials(vendor):
    entries = [
        storage("a", "s3://a") | {"credentialLife": "20m", "allowRoot": True},
        storage("b", "s3://b"),
    ]
    async with opening(vendor, config(storages=entries)) as storages:
        a, b = (storages.find(parse_location(f"s3://{name}/t")) for name in "ab")
        assert a is not None
        assert b is not None
        assert (a.credential_life, a.allow_root) == (timedelta(minutes=20), True)
        assert (b.credential_life, b.allow_root) == (timedelta(hours=1), False)


@pytest.mark.parametrize(
    "change", [{"credentialLife": "30m"}, {"allowRoot": True}, {"revokedAt": "2030-01-01T00:00:00Z"}], ids=str
)
async def test_a_change_of_what_is_said_of_credentials_opens_the_storage_again(vendor, change):
    entry = storage("a", "s3://a")
    async with opening(vendor, config(storages=[entry])) as storages:
        before = storages.find(parse_location("s3://a"))
        await storages.reload(config(storages=[entry | change]))
        assert storages.find(parse_location("s3://a")) is not before
        assert len(vendor.opened) == 2


async def test_entry_may_issue_credentials_and_what_nobody_entered_may_not(vendor):
    async with opening(vendor, config(storages=[storage("a", "s3://a")])) as storages:
        found = storages.find(parse_location("s3://a/t"))
        assert found is not None
        assert found.issuer is not None
    async with opening(vendor, config("s3://a/t")) as storages:
        found = storages.find(parse_location("s3://a/t"))
        assert found is not None
        assert found.issuer is None
        assert found.signer is not None


async def test_reload_puts_the_new_storages_in_force_and_closes_the_old_after_a_grace(vendor, sleep):
    async with opening(vendor, config(storages=[storage("old", "s3://a")]), sleep) as storages:
        await storages.reload(config(storages=[storage("new", "s3://a")]))

        assert name_of(storages, "s3://a/t") == "new"
        await asyncio.sleep(0)
        assert sleep.asked == [30]
        assert vendor.closed == []
        await sleep.end()
        assert vendor.closed == ["old"]

    assert vendor.closed == ["old", "new"]


async def test_reload_that_fails_leaves_the_old_storages_in_force(vendor, sleep):
    async with opening(vendor, config(storages=[storage("old", "s3://a")]), sleep) as storages:
        with pytest.raises(ConfigError):
            await storages.reload(config(storages=[storage("new", "s3://a", "missing")]))
        with pytest.raises(OSError, match="no route"):
            await storages.reload(
                config(storages=[storage("x", "s3://x"), storage("new", "s3://a", fails="open")])
            )

        assert name_of(storages, "s3://a/t") == "old"
        assert vendor.closed == ["x"]
        assert sleep.asked == []


async def test_reload_without_a_change_of_storages_opens_nothing(vendor):
    entries = [storage("a", "s3://a", region="eu")]
    async with opening(vendor, config(storages=entries)) as storages:
        await storages.reload(config("s3://a/t", storages=entries))

        assert len(vendor.opened) == 1


async def test_storages_out_of_use_are_closed_with_the_rest_even_within_their_grace(vendor, sleep):
    async with opening(vendor, config(storages=[storage("old", "s3://a")]), sleep) as storages:
        await storages.reload(config(storages=[storage("new", "s3://a")]))

    assert sorted(vendor.closed) == ["new", "old"]


async def test_storage_that_fails_to_close_does_not_keep_the_others_open(vendor, caplog):
    entries = [storage("a", "s3://a"), storage("b", "s3://b", fails="close")]
    async with opening(vendor, config(storages=entries)):
        pass

    assert sorted(vendor.closed) == ["a", "b"]
    assert "failed to close" in caplog.text


async def test_reload_waits_for_the_one_before_it_so_that_nothing_is_left_open(vendor, sleep):
    async with opening(vendor, config(storages=[storage("a", "s3://a")]), sleep) as storages:
        vendor.gate.clear()
        reloads = [
            asyncio.create_task(storages.reload(config(storages=[storage(name, "s3://a")]))) for name in "bc"
        ]
        for _ in range(20):
            await asyncio.to_thread(int)
        assert [settings.name for settings in vendor.opened] == ["a", "b"]
        vendor.gate.set()
        await asyncio.gather(*reloads)

        assert name_of(storages, "s3://a/t") == "c"

    assert sorted(vendor.closed) == ["a", "b", "c"]
