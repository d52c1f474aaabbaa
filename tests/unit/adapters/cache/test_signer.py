"""The cached signer, rule by rule. Where a case has a number, it is one of the attack cases on caches."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from datetime import timedelta
from typing import Any

import pytest

from gateway.adapters.cache.codec import Packed
from gateway.adapters.cache.drop import Drops
from gateway.adapters.cache.fingerprint import Fingerprint
from gateway.adapters.cache.key import marks_of, paths_key, place_key
from gateway.adapters.cache.promise import least_left
from gateway.adapters.cache.sealed import Address
from gateway.adapters.cache.url_codec import SIGNATURES
from gateway.adapters.cache.vault import Vault
from gateway.adapters.credential_metrics import Outcome, RedisError
from gateway.domain.file_path import Paths
from gateway.domain.key import Key, Keys
from gateway.domain.location import parse_location
from gateway.domain.window import URL_PARTS, Window, window_at
from gateway.errors import Unavailable, Unsupported
from gateway.ports import Signatures, Signer, SigningCost
from tests.fakes.hmac_signer import HmacSigner, is_genuine, urls_of
from tests.unit.adapters.cache.doubles import (
    HOUR,
    KEYS,
    LEASE,
    MINUTE,
    NOON,
    WINDOW,
    Replica,
    planned,
    settle,
)
from tests.waiting import eventually_async

HASH, PRIVATE_KEY, CALL = SigningCost.HASH, SigningCost.PRIVATE_KEY, SigningCost.CALL
SECOND = timedelta(seconds=1)
TABLE = parse_location("s3://lake/sales/orders")
SEGMENT = Paths(b"a.parquet\nb.parquet\nc.parquet", is_segment=True)
FEW = Paths(b"c.parquet\na.parquet")
WIDTH = WINDOW.end - WINDOW.start
FOLLOWING = Window(WINDOW.end, WINDOW.end + WIDTH, WINDOW.expires_at + WIDTH)


@pytest.fixture(params=SigningCost)
def each(request, time):
    """A signer of each cost."""
    return HmacSigner(request.param, clock=time.clock)


@pytest.fixture
def call(time):
    return HmacSigner(CALL, clock=time.clock)


async def sign(signer: Signer, paths: Paths = SEGMENT, window: Window = WINDOW) -> Signatures:
    return await signer.sign(TABLE, paths, window)


def unreadable(replica: Replica) -> float:
    return replica.redis_errors(RedisError.UNREADABLE)


def assert_genuine(signatures: Signatures, paths: Paths = SEGMENT) -> None:
    urls = urls_of(paths, signatures)
    assert all(is_genuine(url, NOON) for url in urls)
    assert [url.partition("?")[0].rpartition("/")[2].encode() for url in urls] == paths.split()


async def test_it_is_the_signer_that_it_wraps(replica, each):
    wrapped: Signer = replica.signer(each)
    assert (wrapped.cost, wrapped.has_sessions) == (each.cost, False)
    assert replica.signer(HmacSigner(sessions=replica.sessions())).has_sessions is True
    assert await sign(wrapped) == await sign(each)


async def test_a_segment_is_signed_once_in_a_window(replica, each):
    signer = replica.signer(each)
    first = await sign(signer)
    assert await sign(signer) == first
    assert len(each.calls) == 1
    await sign(signer, window=FOLLOWING)
    assert len(each.calls) == 2
    assert replica.urls_by_source() == {"memory": 3, "signed": 6}


async def test_sixty_four_clients_that_ask_for_the_same_segment_sign_it_once(replica, each):
    signer = replica.signer(each)
    each.gate.clear()
    tasks = [asyncio.create_task(sign(signer)) for _ in range(64)]
    await settle()
    tasks[0].cancel()
    each.gate.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert len({result.signatures for result in results if isinstance(result, Signatures)}) == 1
    assert len(each.calls) == 1


async def test_a_slow_page_holds_up_no_other(replica, call):
    signer = replica.signer(call)
    call.gate.clear()
    slow = asyncio.create_task(sign(signer))
    await settle()
    call.gate.set()
    await sign(signer, Paths(b"z.parquet"))
    await slow


async def test_what_costs_a_hash_is_remembered_as_a_segment_only(replica):
    cheap = HmacSigner(HASH)
    signer = replica.signer(cheap)
    await sign(signer)
    for _ in range(2):
        assert_genuine(await sign(signer, FEW), FEW)
    assert len(cheap.calls) == 3
    assert replica.urls_by_source() == {"signed": 7}


@pytest.mark.parametrize("cost", [PRIVATE_KEY, CALL])
async def test_what_costs_more_is_remembered_file_by_file(replica, cost):
    dear = HmacSigner(cost)
    signer = replica.signer(dear)
    await sign(signer)
    few = await sign(signer, FEW)
    assert_genuine(few, FEW)
    assert len(dear.calls) == 1
    more = Paths(b"b.parquet\nd.parquet\na.parquet")
    assert_genuine(await sign(signer, more), more)
    assert dear.signed == [*SEGMENT.split(), b"d.parquet"]
    assert replica.urls_by_source() == {"memory": 2, "signed": 6}


@pytest.mark.parametrize("cost", [PRIVATE_KEY, CALL])
@pytest.mark.parametrize(("pages", "most"), [(30, 0), (60, 1000)])
async def test_a_table_that_is_read_from_end_to_end_is_not_signed_again_but_for_what_does_not_fit(
    time, cost, pages, most
):
    dear = HmacSigner(cost)
    signer = Replica(time, None, urls={"memory": "1536KiB"}).signer(dear)
    table = [Paths(b"\n".join(b"%d-%d" % (page, n) for n in range(100))) for page in range(pages)]
    for page in table:
        await sign(signer, page)
    for _ in range(3):
        dear.calls.clear()
        for page in table:
            assert_genuine(await sign(signer, page), page)
        assert len(dear.signed) <= most


async def test_no_paths_are_signed_for_their_origin(replica, each):
    signer = replica.signer(each)
    assert (await sign(signer, Paths(b""))).origin == "https://lake.store.example/sales/orders/"


async def test_without_memory_each_is_signed_anew(time, each):
    signer = Replica(time, None, urls={"memory": "0"}).signer(each)
    assert await sign(signer) == await sign(signer)
    assert len(each.calls) == 2


async def test_at_33_storages_with_other_settings_share_nothing(new_replica, each):
    replica = new_replica(urls={"redis": "always"})
    changes: tuple[dict[str, Any], ...] = (
        {},
        {"options": {"secret": {"value": "one"}}},
        {"options": {"secret": {"value": "two"}}},
        {"revoked_at": NOON},
        {"name": "pond"},
        {"vendor": "s3"},
    )
    for change in changes:
        await sign(replica.signer(each, **change))
    await settle()
    assert len(each.calls) == len(changes)


async def test_at_33_urls_that_lead_back_to_the_gateway_are_not_those_of_another(new_replica, each):
    rotated = Keys(current=Key(id="k2", secret=b"n" * 32), previous=KEYS.current)
    always = {"redis": "always"}
    for options in ({}, {"public_url": "https://other.example"}, {"url_keys": rotated}):
        await sign(new_replica(urls=always, **options).signer(each))
        await settle()
    assert len(each.calls) == 3
    await sign(new_replica(urls=always).signer(each))
    assert len(each.calls) == 3


async def test_a_reload_that_leaves_a_storage_as_it_is_loses_nothing(replica, each):
    await sign(replica.signer(each, options={"region": "eu"}))
    await sign(replica.signer(each, options={"region": "eu"}))
    assert len(each.calls) == 1


async def test_a_secret_replaced_on_disk_is_another_storage(replica, each, time, tmp_path):
    file = tmp_path / "secret"
    file.write_text("one")
    signer = replica.signer(each, options={"secret": {"file": str(file)}})
    await sign(signer)
    file.write_text("two")
    time.move(MINUTE)
    await sign(signer)
    assert len(each.calls) == 2


async def test_at_35_nothing_is_served_with_less_left_than_the_window_promises(new_replica, each, time):
    replica = new_replica(urls={"redis": "always"})
    signer = replica.signer(each)
    for _ in range(400):
        window = window_at(time.now, HOUR, URL_PARTS, b"k")
        signatures = await sign(signer, window=window)
        await settle()
        assert signatures.expires_at - time.now >= 45 * MINUTE
        time.move(timedelta(seconds=17))
    # 6,800 seconds are eight windows of 15 minutes at most.
    assert len(each.calls) <= 9


async def test_at_35_twenty_minutes_are_left_where_the_life_allows(replica, each, time):
    signer = replica.signer(each)
    for _ in range(100):
        window = window_at(time.now, 24 * MINUTE, URL_PARTS, b"k")
        assert (await sign(signer, window=window)).expires_at - time.now >= 20 * MINUTE
        time.move(timedelta(seconds=17))


async def test_at_35_a_window_that_has_ended_is_not_served_however_long_it_lies_there(
    new_replica, each, time, redis
):
    replica = new_replica(urls={"redis": "always"})
    signer = replica.signer(each)
    await sign(signer)
    await settle()
    for name, (value, until) in redis.values.items():
        redis.values[name] = value, until + HOUR
    time.move(WINDOW.end - NOON)
    await sign(signer)
    assert len(each.calls) == 1
    time.move(SECOND)
    # Asked for all the same, by a service whose clock is late.
    await sign(signer)
    await sign(new_replica(urls={"redis": "always"}).signer(each))
    assert len(each.calls) == 3


async def test_at_35_a_clock_that_is_set_back_finds_its_own_window(replica, each, time):
    signer = replica.signer(each)
    later = await sign(signer, window=FOLLOWING)
    time.move(-WIDTH)
    earlier = await sign(signer)
    assert earlier.expires_at == WINDOW.expires_at
    assert earlier != later
    assert await sign(signer) == earlier
    assert len(each.calls) == 2


async def test_at_35_redis_holds_it_until_the_window_ends_and_no_longer(new_replica, each, redis):
    await sign(new_replica(urls={"redis": "always"}).signer(each))
    await settle()
    ((_, until),) = redis.values.values()
    assert until == WINDOW.end


async def test_at_36_the_expiration_that_is_told_is_that_of_what_signed(new_replica, each):
    each.ends_at = NOON + 50 * MINUTE
    for replica in (new_replica(urls={"redis": "always"}), new_replica(urls={"redis": "always"})):
        signer = replica.signer(each)
        for _ in range(2):
            assert (await sign(signer)).expires_at == NOON + 50 * MINUTE
        await settle()
    assert len(each.calls) == 1


async def test_at_37_a_url_ends_with_its_session_and_one_that_falls_short_is_not_kept(
    new_replica, time, redis, caplog
):
    replica = new_replica(urls={"redis": "always"})
    vendor = HmacSigner(sessions=replica.sessions(), clock=time.clock)
    vendor.session_life = 30 * MINUTE
    signer = replica.signer(vendor)
    for _ in range(3):
        assert (await sign(signer)).expires_at == NOON + 30 * MINUTE
    await settle()
    assert len(vendor.calls) == 3
    assert len(vendor.minted) == 1
    assert replica.url_series.signings[Outcome.SHORT] == 3
    assert caplog.text.count("signs URLs that end in 30 minutes") == 1
    # The session alone.
    assert len(redis.values) == 1


async def test_at_37_a_session_that_ends_early_is_kept_for_as_long_as_enough_is_left(replica, each, time):
    each.ends_at = NOON + 48 * MINUTE
    signer = replica.signer(each)
    await sign(signer)
    time.move(3 * MINUTE)
    await sign(signer)
    assert len(each.calls) == 1
    time.move(SECOND)
    await sign(signer)
    assert len(each.calls) == 2


async def test_at_39_one_replica_calls_and_the_others_wait(new_replica, call):
    signers = [new_replica().signer(call) for _ in range(4)]
    call.gate.clear()
    tasks = [asyncio.create_task(sign(signer)) for signer in signers for _ in range(5)]
    await settle()
    call.gate.set()
    assert len({result.signatures for result in await asyncio.gather(*tasks)}) == 1
    assert len(call.calls) == 1


async def test_at_39_a_leader_that_died_costs_its_lease_and_no_more(new_replica, call, redis, time):
    signer = new_replica().signer(call)
    call.failure = Unavailable("not now")
    with pytest.raises(Unavailable):
        await sign(signer)
    call.failure = None
    redis.leases[redis.claims[-1]] = b"dead", time.now + LEASE
    await sign(signer)
    assert LEASE <= time.now - NOON < LEASE + SECOND


async def test_at_40_a_failure_is_shared_by_those_who_wait_and_not_kept(new_replica, each, redis):
    signer = new_replica(urls={"redis": "always"}).signer(each)
    each.gate.clear()
    each.failure = Unsupported("the role may not sign")
    tasks = [asyncio.create_task(sign(signer)) for _ in range(3)]
    await settle()
    each.gate.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [Unsupported] * 3
    assert len(each.calls) == 1
    assert not redis.values
    assert not redis.leases
    each.failure = None
    assert_genuine(await sign(signer))


@pytest.mark.parametrize(
    "failure",
    [Unavailable("slow down", retry_after=MINUTE), Unavailable("no answer")],
    ids=["throttled", "out"],
)
async def test_at_40_while_a_provider_signs_nothing_the_window_before_is_served(replica, call, time, failure):
    signer = replica.signer(call)
    old = await sign(signer)
    call.failure = failure
    time.move(WINDOW.end - NOON)
    for _ in range(5):
        assert await sign(signer, window=FOLLOWING) == old
    # It was asked once, and is left alone while something else does.
    assert len(call.calls) == 2
    with pytest.raises(Unavailable):
        await sign(signer, Paths(b"never-seen.parquet"), FOLLOWING)
    call.failure = None
    time.move(MINUTE)
    assert (await sign(signer, window=FOLLOWING)).expires_at == FOLLOWING.expires_at
    assert replica.urls_by_source() == {"signed": 6, "stale": 15}


async def test_at_40_in_need_nothing_is_served_with_less_than_five_minutes_left(replica, call, time):
    signer = replica.signer(call)
    call.ends_at = NOON + 46 * MINUTE
    await sign(signer)
    call.failure = Unavailable("no answer")
    time.move(41 * MINUTE)
    near = Window(FOLLOWING.start, FOLLOWING.end, FOLLOWING.expires_at)
    assert (await sign(signer, window=near)).expires_at == NOON + 46 * MINUTE
    time.move(SECOND)
    with pytest.raises(Unavailable):
        await sign(signer, window=near)


async def test_at_41_what_is_dropped_with_its_storage_is_found_by_nobody(new_replica, each, redis):
    always = {"redis": "always"}
    await sign(new_replica(urls=always).signer(each))
    await settle()
    assert await Drops(redis, Vault(KEYS)).drop_storage("lake") == 1
    # What is left is the epoch.
    assert len(redis.values) == 1
    await sign(new_replica(urls=always).signer(each))
    assert len(each.calls) == 2


async def test_at_41_what_was_being_signed_when_it_was_dropped_is_found_by_nobody(new_replica, each, redis):
    always = {"redis": "always"}
    each.gate.clear()
    task = asyncio.create_task(sign(new_replica(urls=always).signer(each)))
    await settle()
    await Drops(redis, Vault(KEYS)).drop_storage("lake")
    each.gate.set()
    await task
    await settle()
    await sign(new_replica(urls=always).signer(each))
    assert len(each.calls) == 2


async def test_at_41_what_was_being_signed_under_older_settings_is_not_served_by_the_newer(replica, each):
    each.gate.clear()
    old = asyncio.create_task(sign(replica.signer(each, options={"secret": "one"})))
    await settle()
    newer = replica.signer(HmacSigner(each.cost, secret=b"two"), options={"secret": "two"})
    new = asyncio.create_task(sign(newer))
    await settle()
    each.gate.set()
    assert (await old).signatures != (await new).signatures
    assert (await sign(newer)).signatures == (await new).signatures


async def test_at_43_memory_is_bounded_under_random_keys(time, each):
    replica = Replica(time, None, urls={"memory": "100KiB"})
    signer = replica.signer(each)
    for _ in range(500):
        paths = Paths(secrets.token_hex(100).encode(), is_segment=True)
        await signer.sign(parse_location(f"s3://lake/{secrets.token_hex(4)}"), paths, WINDOW)
        assert replica.urls.urls.memory.size <= 100 * 1024
    assert len(replica.urls.urls.flights) == 0


async def test_replicas_find_each_others_signatures(new_replica, each):
    always = {"redis": "always"}
    one, two = new_replica(urls=always), new_replica(urls=always)
    first = await sign(one.signer(each))
    await settle()
    assert await sign(two.signer(each)) == first
    assert len(each.calls) == 1
    assert two.urls_by_source() == {"redis": 3}


@pytest.mark.parametrize(
    ("in_redis", "shared"),
    [("auto", {PRIVATE_KEY, CALL}), ("always", set(SigningCost)), ("never", set())],
)
async def test_what_costs_more_than_redis_is_shared_unless_told_otherwise(
    new_replica, each, redis, in_redis, shared
):
    await sign(new_replica(urls={"redis": in_redis}).signer(each))
    await settle()
    assert bool(redis.values) is (each.cost in shared)


async def test_an_answer_does_not_wait_for_what_is_stored(new_replica, redis):
    dear = HmacSigner(PRIVATE_KEY)
    stored, gate = redis.put, asyncio.Event()

    async def slow(*arguments: object) -> bool:
        await gate.wait()
        return bool(await stored(*arguments))

    redis.put = slow
    replica = new_replica()
    signer = replica.signer(dear)
    assert_genuine(await sign(signer))
    assert not redis.values
    gate.set()
    await settle()
    assert redis.values
    await replica.stop()


async def test_what_redis_is_too_slow_for_is_not_piled_up(new_replica, redis):
    started: list[str] = []

    async def never(name: str, *_: object) -> bool:
        started.append(name)
        return await asyncio.Event().wait()

    redis.put = never
    replica = new_replica()
    signer = replica.signer(HmacSigner(PRIVATE_KEY))
    for number in range(200):
        await sign(signer, Paths(b"%d.parquet" % number))
    await settle()
    assert len(started) == 64
    await replica.stop()


async def test_at_45_requests_succeed_while_redis_is_out(new_replica, each, redis):
    redis.is_out = True
    for replica in (new_replica(urls={"redis": "always"}), new_replica(urls={"redis": "always"})):
        assert_genuine(await sign(replica.signer(each)))
    assert len(each.calls) == 2


async def test_at_45_a_full_redis_is_still_read(new_replica, each, redis):
    always = {"redis": "always"}
    first = await sign(new_replica(urls=always).signer(each))
    await settle()
    redis.is_full = True
    signer = new_replica(urls=always).signer(each)
    assert await sign(signer) == first
    assert_genuine(await sign(signer, Paths(b"z.parquet", is_segment=True)), Paths(b"z.parquet"))


@pytest.mark.parametrize("poison", [b"garbage", b"\x01", b"\x01\xff", b"\x02" * 100, bytes(200)])
async def test_at_45_a_poisoned_value_is_a_miss_and_replaced(new_replica, each, redis, poison):
    always = {"redis": "always"}
    await sign(new_replica(urls=always).signer(each))
    await settle()
    for name, (_, until) in redis.values.items():
        redis.values[name] = poison, until
    two = new_replica(urls=always)
    assert_genuine(await sign(two.signer(each)))
    await settle()
    assert unreadable(two) == 1
    await sign(new_replica(urls=always).signer(each))
    assert len(each.calls) == 2


async def test_at_45_a_value_moved_from_another_key_is_a_miss(new_replica, each, redis):
    always = {"redis": "always"}
    signer = new_replica(urls=always).signer(each)
    await sign(signer)
    await settle()
    ((mine, _),) = redis.values.items()
    other = parse_location("s3://lake/secret")
    await signer.sign(other, SEGMENT, WINDOW)
    await settle()
    (theirs,) = redis.values.keys() - {mine}
    redis.values[mine] = redis.values[theirs]
    two = new_replica(urls=always)
    signatures = await sign(two.signer(each))
    assert signatures.origin == "https://lake.store.example/sales/orders/"
    assert_genuine(signatures)
    assert unreadable(two) == 1


async def test_at_45_signatures_of_another_number_of_files_are_a_miss(new_replica, each, redis):
    always = {"redis": "always"}
    one = new_replica(urls=always)
    await sign(one.signer(each))
    await settle()
    ((name, (genuine, _)),) = redis.values.items()
    few = await sign(each, FEW)
    await one.shared.replicas.sealed.put(segment_address(one), Packed(few, (b"",)), MINUTE)
    # The value of the same name is another.
    assert list(redis.values) == [name]
    assert redis.values[name][0] != genuine
    two = new_replica(urls=always)
    assert_genuine(await sign(two.signer(each)))
    assert two.urls_by_source() == {"signed": 3}
    assert unreadable(two) == 0


def segment_address(replica: Replica) -> Address[Signatures]:
    """Return the address of the signatures of ``SEGMENT``."""
    fingerprint = Fingerprint(planned()).value
    assert fingerprint is not None
    place = place_key(fingerprint, replica.urls.urls.base, TABLE, WINDOW)
    return Address(
        key=paths_key(place, hashlib.sha256(SEGMENT.joined).digest()),
        marks=marks_of("lake"),
        codec=SIGNATURES,
        accepts=lambda _: True,
        count_wait=lambda: None,
    )


async def test_after_a_rotation_of_keys_nothing_is_signed_anew(new_replica, each, redis):
    always = {"redis": "always"}
    first = await sign(new_replica(urls=always).signer(each))
    await settle()
    rotated = Keys(current=Key(id="k2", secret=b"n" * 32), previous=KEYS.current)
    assert await sign(new_replica(urls=always, keys=rotated).signer(each)) == first
    assert len(each.calls) == 1
    foreign = Keys(current=Key(id="k3", secret=b"f" * 32))
    await sign(new_replica(urls=always, keys=foreign).signer(each))
    assert len(each.calls) == 2


async def test_replicas_with_sessions_give_the_same_bytes_without_sharing_them(new_replica, time):
    replicas = new_replica(), new_replica()
    vendors = [HmacSigner(sessions=each.sessions(), clock=time.clock) for each in replicas]
    signers = [each.signer(vendor) for each, vendor in zip(replicas, vendors, strict=True)]
    first, second = [await sign(signer) for signer in signers]
    assert first == second
    assert_genuine(first)
    assert sum(len(vendor.minted) for vendor in vendors) == 1
    # Each has signed for itself, with what one of them has minted.
    assert [len(vendor.calls) for vendor in vendors] == [1, 1]


async def test_a_large_page_is_remembered_too(new_replica, each, redis):
    paths = Paths(b"\n".join(b"%0100d.parquet" % number for number in range(4000)), is_segment=True)
    always = {"redis": "always"}
    first = await sign(new_replica(urls=always).signer(each), paths)
    await eventually_async(lambda: redis.values)
    two = new_replica(urls=always)
    assert await sign(two.signer(each), paths) == first
    assert two.urls_by_source() == {"redis": 4000}


async def test_what_goes_on_ends_with_the_process(new_replica, call):
    replica = new_replica()
    call.gate.clear()
    task = asyncio.create_task(sign(replica.signer(call)))
    await settle()
    await replica.stop()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_the_promise_of_the_windows_here():
    assert least_left(WINDOW) == 45 * MINUTE
