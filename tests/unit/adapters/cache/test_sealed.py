from __future__ import annotations

from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry

from gateway.adapters.cache.codec import CREDENTIALS, Packed
from gateway.adapters.cache.drop import Drops
from gateway.adapters.cache.key import marks_of
from gateway.adapters.cache.sealed import Address, Looked, Sealed
from gateway.adapters.cache.vault import Vault
from gateway.adapters.credential_metrics import CredentialMetrics
from gateway.domain.credential import Credential
from gateway.domain.key import Key, Keys
from tests.unit.adapters.cache.doubles import HOUR, KEYS, MINUTE, NOON, credential

VALUE = credential("value", NOON + HOUR)
(MARK,) = marks_of("lake")


def address(key: bytes = b"key", *, accepts: bool = True) -> Address[Credential]:
    return Address(
        key=key, marks=(MARK,), codec=CREDENTIALS, accepts=lambda _: accepts, count_wait=lambda: None
    )


def opened(redis, keys: Keys = KEYS) -> Sealed:
    return Sealed(redis, Vault(keys), CredentialMetrics(CollectorRegistry()))


@pytest.fixture
def sealed(redis):
    return opened(redis)


async def put(sealed: Sealed, life: timedelta = MINUTE) -> None:
    await sealed.put(address(), Packed(VALUE, (b"",)), life)


async def test_what_was_put_is_found_in_one_round_trip(sealed, redis):
    await put(sealed)
    asked, find = [], redis.find

    async def counted(names):
        asked.append(names)
        return await find(names)

    redis.find = counted
    assert await sealed.look(address()) == Looked(VALUE, (b"",))
    assert await sealed.look(address(b"other")) == Looked(None, (b"",))
    assert [len(names) for names in asked] == [2, 2]


async def test_a_store_that_does_not_answer_tells_no_epochs_to_store_anything_with(sealed, redis):
    redis.is_out = True
    assert await sealed.look(address()) == Looked(None, None)
    assert await sealed.find_epochs(address()) is None


async def test_what_may_not_be_handed_out_is_not_found(sealed):
    await put(sealed)
    assert (await sealed.look(address(accepts=False))).value is None


async def test_what_was_put_is_gone_when_its_time_has_passed(sealed, time):
    await put(sealed)
    time.move(MINUTE)
    assert (await sealed.look(address())).value is None


async def test_what_was_put_before_a_rotation_of_keys_is_found(redis):
    await put(opened(redis))
    rotated = opened(redis, Keys(current=Key(id="k2", secret=b"n" * 32), previous=KEYS.current))
    assert (await rotated.look(address())).value == VALUE
    assert await rotated.find_rotated(address(), (b"",)) == VALUE


async def test_what_was_put_in_another_epoch_is_not_found(sealed, redis):
    await sealed.put(address(), Packed(VALUE, (b"older",)), MINUTE)
    assert (await sealed.look(address())).value is None


async def test_what_is_full_takes_nothing_and_lists_nothing(sealed, redis):
    redis.is_full = True
    await put(sealed)
    assert not redis.values
    assert not redis.lists


async def test_what_was_put_is_listed_by_its_marks(sealed, redis):
    await put(sealed)
    assert len(redis.lists) == 1
    assert await Drops(redis, Vault(KEYS)).drop_storage("lake") == 1
    assert (await sealed.look(address())).value is None
