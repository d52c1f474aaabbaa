from __future__ import annotations

import pytest

from gateway.adapters.state import ProvedState, open_state, state_location
from gateway.config.faults import ConfigError
from gateway.config.schema import Config
from gateway.domain.location import parse_location
from gateway.errors import Unavailable, Unsupported
from gateway.ports import Storage
from tests.fakes.state_store import FakeStateStore
from tests.fakes.storages import FakeStorages


class Careless(FakeStateStore):
    """A store that takes a condition for no condition, as some do that have never heard of it."""

    def __init__(self, *ignored: str) -> None:
        super().__init__()
        self._ignored = ignored

    async def create(self, key: str, content: bytes) -> str | None:
        if "create" in self._ignored and key in self.entries:
            return await super().replace(key, content, await self._tag(key))
        return await super().create(key, content)

    async def replace(self, key: str, content: bytes, tag: str) -> str | None:
        if "replace" in self._ignored:
            tag = await self._tag(key)
        return await super().replace(key, content, tag)

    async def _tag(self, key: str) -> str:
        entry = await self.get(key)
        return entry.tag if entry else ""


async def test_store_that_keeps_to_conditions_is_proved_once_and_left_clean():
    store = FakeStateStore()
    proved = ProvedState(store)
    await proved.prove()
    calls = len(store.calls)
    await proved.prove()

    assert (store.entries, len(store.calls)) == ({}, calls)


@pytest.mark.parametrize("ignored", ["create", "replace"])
async def test_store_that_puts_in_any_case_is_refused_at_the_start_by_name(ignored):
    proved = ProvedState(Careless(ignored))

    with pytest.raises(ConfigError) as raised:
        await proved.prove_at_start()
    (fault,) = raised.value.faults
    assert fault.path == "state.location"
    assert "puts on conditions" in fault.message


@pytest.mark.parametrize("ignored", ["create", "replace"])
async def test_store_that_puts_in_any_case_is_never_written_to(ignored):
    store = Careless(ignored)
    proved = ProvedState(store)

    with pytest.raises(Unsupported):
        await proved.create("jobs/a", b"")
    with pytest.raises(Unsupported):
        await proved.replace("jobs/a", b"", "tag")
    assert store.entries == {}
    assert await proved.get("jobs/a") is None
    assert await proved.list("") == []


async def test_store_that_is_away_at_the_start_is_proved_when_it_is_written_to(caplog):
    store = FakeStateStore()
    proved = ProvedState(store)

    async def away(method: str, key: str) -> None:
        raise Unavailable("away")

    store.before = away
    await proved.prove_at_start()
    assert "not there yet" in caplog.text
    with pytest.raises(Unavailable):
        await proved.create("jobs/a", b"")
    store.before = FakeStateStore().before

    assert await proved.create("jobs/a", b"")


@pytest.mark.parametrize("method", ["create", "replace"])
async def test_answer_that_is_lost_proves_nothing_against_a_store(method):
    """obstore asks again by itself, and is then told that its own object is there already."""
    store = FakeStateStore()
    put = getattr(store, method)
    lost = [method]

    async def losing(*given):
        answer = await put(*given)
        return None if lost and lost.pop() else answer

    setattr(store, method, losing)
    await ProvedState(store).prove()


def test_state_lies_below_the_state_directory_unless_it_is_told_otherwise():
    assert state_location(Config(stateDir="/var/lib/sluice")).path == "var/lib/sluice/state"
    assert state_location(Config(stateDir="/s", state={"location": "s3://b/x"})).text == "s3://b/x"


async def test_directory_needs_no_storage(tmp_path):
    async with open_state(Config(stateDir=str(tmp_path)), FakeStorages()) as state:
        await state.create("a", b"one")

    assert (tmp_path / "state" / "a").read_bytes() == b"one"


async def test_state_on_a_store_is_that_of_the_storage_that_is_open_now():
    stores = [FakeStateStore(), FakeStateStore()]
    storages = FakeStorages(_storage(stores[0]))
    config = Config(stateDir="/s", state={"location": "s3://state/sluice"})
    async with open_state(config, storages) as state:
        await state.create("a", b"one")
        storages.storages = (_storage(stores[1]),)
        assert await state.get("a") is None
        await state.create("b", b"two")
        storages.storages = ()
        with pytest.raises(Unavailable, match=r"state\.location"):
            await state.get("a")

    assert [list(store.entries) for store in stores] == [["a"], ["b"]]


async def test_storage_that_cannot_hold_state_is_a_fault():
    storages = FakeStorages(Storage(name="lake", prefix=parse_location("s3://state")))
    async with open_state(Config(state={"location": "s3://state/a"}), storages) as state:
        with pytest.raises(ConfigError, match=r"state\.location: the storage .* cannot hold what we keep"):
            await state.get("a")


def _storage(store: FakeStateStore) -> Storage:
    return Storage(name="state", prefix=parse_location("s3://state"), open_state=lambda _: store)
