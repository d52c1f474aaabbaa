from __future__ import annotations

import asyncio
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import polars as pl
import pytest

from gateway.demo.partition import log_path
from gateway.domain.location import parse_location
from gateway.domain.log import HINT, checkpoint_name, commit_name, version_prefix
from gateway.errors import InvalidArgument, Unavailable, Unsupported
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.store import SnapshotStore
from tests.builders import STARTED_AT, STEP, add, location_of, numbers, remove, rows
from tests.fakes.faulty_log_reader import FaultyLogReader
from tests.fakes.log_reader import FakeLogReader
from tests.fakes.snapshot_metrics import FakeSnapshotMetrics
from tests.unit.services.snapshot.log.parquet_files import parquet
from tests.unit.services.snapshot.log.watched import watch

_MEMORY = 1024 * 1024


@pytest.fixture
def reader():
    return FakeLogReader()


@pytest.fixture
def table(tmp_path):
    return numbers(tmp_path).append(rows([1])).append(rows([2]))


@pytest.fixture
def log(table, reader):
    return TableLog(location=location_of(table), reader=reader)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def metrics():
    return FakeSnapshotMetrics()


@pytest.fixture
def store(clock, metrics):
    return SnapshotStore(memory=_MEMORY, clock=clock, metrics=metrics)


class Clock:
    def __init__(self) -> None:
        self.now = STARTED_AT

    def __call__(self) -> datetime:
        return self.now


def paths_of(snapshot):
    return snapshot.files.rows(0, snapshot.files.height)["path"].to_list()


def read_by(reader):
    """Return what was read of the log but for its hint."""
    return sorted(name for name in reader.read if name != HINT)


async def test_the_latest_version_is_read_from_its_commits(store, log, table):
    snapshot = await store.latest(log)

    assert snapshot.version == 1
    assert paths_of(snapshot) == list(table.live)
    assert snapshot.files.size == sum(add["size"] for add in table.live.values())


async def test_nothing_is_read_again_while_nothing_changes(store, log, reader):
    first = await store.latest(log)
    reader.read.clear()

    assert await store.latest(log) is first
    assert read_by(reader) == []
    assert reader.listed == ["", version_prefix(1)]


async def test_a_refresh_reads_the_new_commits_alone(store, log, reader, table):
    await store.latest(log)
    reader.read.clear()
    table.append(rows([3])).delete_files(next(iter(table.live)))

    snapshot = await store.latest(log)

    assert (snapshot.version, paths_of(snapshot)) == (3, list(table.live))
    assert read_by(reader) == [commit_name(2), commit_name(3)]


async def test_a_refresh_does_not_touch_a_snapshot_that_is_being_read(store, log, table):
    before = await store.latest(log)
    paths = paths_of(before)
    table.append(rows([3])).delete_files(paths[0])
    await store.latest(log)

    assert paths_of(before) == paths


async def test_a_checkpoint_saves_reading_what_came_before_it(store, log, reader, table):
    table.checkpoint(parts=2).append(rows([3]))

    snapshot = await store.latest(log)

    assert paths_of(snapshot) == list(table.live)
    assert read_by(reader) == [checkpoint_name(1, 1, 2), checkpoint_name(1, 2, 2), commit_name(2)]


async def test_a_log_without_its_first_commits_is_read_from_its_checkpoint(store, log, table):
    table.checkpoint().append(rows([3])).clean_up(before=2)

    assert paths_of(await store.latest(log)) == list(table.live)


async def test_all_that_ask_at_once_share_one_listing_and_one_reading(store, log, reader):
    reader.may_list.clear()
    waiting = [asyncio.create_task(store.latest(log)) for _ in range(20)]
    await asyncio.sleep(0)
    reader.may_list.set()

    snapshots = await asyncio.gather(*waiting)

    assert len({id(snapshot) for snapshot in snapshots}) == 1
    assert reader.listed == [""]
    assert read_by(reader) == [commit_name(0), commit_name(1)]


async def test_who_asks_after_a_commit_does_not_get_the_version_before_it(store, log, reader, table):
    reader.may_read.clear()
    before = asyncio.create_task(store.latest(log))
    while not read_by(reader):
        await asyncio.sleep(0)
    table.append(rows([3]))
    after = asyncio.create_task(store.latest(log))
    while len(reader.listed) < 2:
        await asyncio.sleep(0)
    reader.may_read.set()

    assert (await before).version == 1
    assert (await after).version == 2


async def test_a_log_of_more_commits_than_are_read_at_once_is_replayed_in_order(store, log, table):
    for number in range(600):
        table.commit(add(f"f{number}"), *([remove(f"f{number - 300}")] if number >= 300 else []))

    assert paths_of(await store.latest(log)) == list(table.live)


async def test_a_damaged_commit_among_many_is_named(store, log, table):
    for number in range(300):
        table.commit(add(f"f{number}"))
    (table.log / commit_name(290)).write_bytes(b'{"add":{}}')

    with pytest.raises(Unsupported, match=f"{commit_name(290)} adds a file without a path"):
        await store.latest(log)


async def test_a_failure_is_not_kept(store, log, reader):
    reader.failure = Unavailable("the store does not answer")
    with pytest.raises(Unavailable):
        await store.latest(log)
    reader.failure = None

    assert (await store.latest(log)).version == 1


async def test_looks_for_a_newer_version_are_counted_by_what_came_of_them(store, log, reader, metrics):
    await store.latest(log)
    await store.latest(log, freshness=timedelta(minutes=5))
    reader.failure = Unavailable("the store does not answer")
    with pytest.raises(Unavailable):
        await store.latest(log)

    assert metrics.checks == ["listed", "skipped", "failed"]


async def test_the_age_of_a_version_that_is_not_looked_for_again_is_told(store, log, clock, metrics):
    await store.latest(log)
    clock.now += timedelta(minutes=2)
    await store.latest(log, freshness=timedelta(minutes=5))

    assert metrics.ages[0] < timedelta(seconds=1)
    assert metrics.ages[1] >= timedelta(minutes=2)


async def test_a_failed_refresh_keeps_what_was_known(store, log, reader, table):
    first = await store.latest(log)
    reader.failure = Unavailable("the store does not answer")
    with pytest.raises(Unavailable):
        await store.latest(log)
    reader.failure = None

    assert await store.latest(log) is first


async def test_one_that_gives_up_does_not_stop_the_others(store, log, reader):
    reader.may_list.clear()
    first, second = (asyncio.create_task(store.latest(log)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    reader.may_list.set()

    assert (await second).version == 1


async def test_a_table_made_anew_in_its_place_is_read_anew(store, log, table, tmp_path):
    await store.latest(log)
    shutil.rmtree(table.directory)
    again = numbers(tmp_path).on(STARTED_AT + 100 * STEP).append(rows([7])).append(rows([8]))

    snapshot = await store.latest(log)

    assert snapshot.version == 1
    assert snapshot.files.size == sum(add["size"] for add in again.live.values())
    assert snapshot.anchor.modified_at == STARTED_AT + 101 * STEP


async def test_a_table_that_has_gone_back_to_an_earlier_version_is_read_anew(store, log, table, tmp_path):
    await store.latest(log)
    shutil.rmtree(table.directory)
    numbers(tmp_path).append(rows([7]))

    assert (await store.latest(log)).version == 0


async def test_a_log_whose_new_commits_are_cleaned_up_already_is_read_anew(store, log, table):
    await store.latest(log)
    table.append(rows([3])).append(rows([4])).checkpoint().append(rows([5]))
    for version in (2, 3):
        (table.log / commit_name(version)).unlink()

    assert paths_of(await store.latest(log)) == list(table.live)


async def test_a_commit_that_is_cleaned_up_on_the_way_is_found_in_the_checkpoint(store, log, reader, table):
    def clean_up(name):
        if name == commit_name(0):
            table.checkpoint().clean_up(before=1)
            reader.gone.add(name)

    reader.before_read = clean_up

    assert paths_of(await store.latest(log)) == list(table.live)


async def test_a_file_that_is_listed_and_never_found_is_missing(store, log, reader):
    reader.gone.add(commit_name(0))

    with pytest.raises(InvalidArgument, match="table files missing") as caught:
        await store.latest(log)

    assert caught.value.error_code == "RESOURCE_DOES_NOT_EXIST"


@pytest.mark.parametrize("make", ["nothing", "empty"])
async def test_a_table_without_a_log_is_missing_files(store, reader, tmp_path, make):
    table = numbers(tmp_path)
    if make == "empty":
        table.log.mkdir(parents=True)
    log = TableLog(location=location_of(table), reader=reader)

    for ask in (store.latest, store.latest_version):
        with pytest.raises(InvalidArgument, match="table files missing") as caught:
            await ask(log)
        assert caught.value.error_code == "RESOURCE_DOES_NOT_EXIST"


async def test_a_gap_in_the_log_is_named(store, log, table):
    table.append(rows([3]))
    (table.log / commit_name(1)).unlink()

    with pytest.raises(Unsupported, match=commit_name(1)):
        await store.latest(log)


async def test_a_commit_that_a_listing_missed_is_looked_for_again(store, log, reader, table):
    table.append(rows([3]))
    reader.missed.add(commit_name(1))

    assert paths_of(await store.latest(log)) == list(table.live)
    assert len(reader.listed) == 2


async def test_a_whole_listing_that_missed_a_commit_between_others_is_made_again(store, log, reader, table):
    table.append(rows([3]))
    reader.missed.add(commit_name(1))

    assert sorted((await store.list_log(log)).commits) == [0, 1, 2]
    assert reader.listed == ["", ""]


async def test_a_gap_that_stays_is_listed_twice_and_no_more(store, log, reader, table):
    table.append(rows([3]))
    (table.log / commit_name(1)).unlink()

    assert sorted((await store.list_log(log)).commits) == [0, 2]
    assert reader.listed == ["", ""]


async def test_a_refresh_is_not_stopped_by_a_damaged_commit_that_a_checkpoint_leads_past(store, log, table):
    await store.latest(log)
    table.append(rows([3])).checkpoint()
    (table.log / commit_name(2)).write_bytes(b'{"add":{"path"')
    table.append(rows([4]))

    snapshot = await store.latest(log)

    assert (snapshot.version, sorted(paths_of(snapshot))) == (3, sorted(table.live))


async def test_a_damaged_commit_is_named(store, log, table):
    (table.log / commit_name(1)).write_bytes(b'{"add":{"path"')

    with pytest.raises(Unsupported, match=commit_name(1)):
        await store.latest(log)


async def test_a_damaged_checkpoint_is_counted_and_the_commits_take_its_place(store, log, table, metrics):
    table.checkpoint()
    (table.log / checkpoint_name(1)).write_bytes(b"PAR1")

    assert paths_of(await store.latest(log)) == list(table.live)
    assert metrics.fallbacks == ["checkpoint"]


async def test_compactions_and_checksums_are_passed_over(store, log, table):
    (table.log / "00000000000000000000.00000000000000000001.compacted.json").write_text("{")
    (table.log / "00000000000000000001.crc").write_text("{")

    assert paths_of(await store.latest(log)) == list(table.live)


async def test_the_version_is_known_without_reading_a_file(store, log, reader, table):
    assert await store.latest_version(log) == 1
    table.append(rows([3]))
    assert await store.latest_version(log) == 2
    assert read_by(reader) == []


async def test_the_version_of_a_known_table_takes_a_short_listing(store, log, reader, table):
    await store.latest(log)
    table.append(rows([3]))
    reader.listed.clear()

    assert await store.latest_version(log) == 2
    assert reader.listed == [version_prefix(1)]


async def test_the_version_of_a_table_made_anew_is_its_own(store, log, table, tmp_path):
    await store.latest(log)
    shutil.rmtree(table.directory)
    numbers(tmp_path).append(rows([7]))

    assert await store.latest_version(log) == 0


async def test_an_older_version_has_the_files_that_it_had(store, log, table):
    live = list(table.live)
    table.append(rows([3])).delete_files(live[0])

    snapshot = await store.at(log, await store.list_log(log), 1)

    assert (snapshot.version, paths_of(snapshot)) == (1, live)


async def test_an_older_version_is_read_once(store, log, reader):
    listing = await store.list_log(log)
    first = await store.at(log, listing, 0)
    reader.read.clear()

    assert await store.at(log, listing, 0) is first
    assert read_by(reader) == []


async def test_the_latest_version_by_number_is_the_one_that_is_known(store, log, reader):
    latest = await store.latest(log)
    reader.read.clear()

    assert await store.at(log, await store.list_log(log), 1) is latest
    assert read_by(reader) == []


async def test_an_older_version_of_a_table_made_anew_is_read_anew(store, log, table, tmp_path):
    await store.at(log, await store.list_log(log), 0)
    shutil.rmtree(table.directory)
    numbers(tmp_path).on(STARTED_AT + STEP).append(rows(range(100)))

    snapshot = await store.at(log, await store.list_log(log), 0)

    assert snapshot.anchor.modified_at == STARTED_AT + STEP


async def test_a_version_of_a_table_made_anew_is_not_that_which_is_being_read(
    store, log, reader, table, tmp_path
):
    reader.may_read.clear()
    before = asyncio.create_task(store.at(log, await store.list_log(log), 1))
    await asyncio.sleep(0)
    shutil.rmtree(table.directory)
    numbers(tmp_path).on(STARTED_AT + 100 * STEP).append(rows([1])).append(rows([2]))
    listing = await store.list_log(log)
    after = asyncio.create_task(store.at(log, listing, 1))
    await asyncio.sleep(0)
    reader.may_read.set()

    assert (await after).anchor == listing.find_anchor(1)
    await before


async def test_without_memory_everything_is_served_and_nothing_kept(log, reader, clock, metrics):
    store = SnapshotStore(memory=1, clock=clock, metrics=metrics)
    await store.latest(log)
    reader.read.clear()

    assert (await store.latest(log)).version == 1
    assert read_by(reader) == [commit_name(0), commit_name(1)]


async def test_a_log_of_many_files_is_listed_aside(store, log, table):
    for version in range(2, 1200):
        os.link(table.log / commit_name(1), table.log / commit_name(version))

    assert await store.latest_version(log) == 1199


@pytest.mark.parametrize("known", [None, 10])
async def test_a_log_of_many_files_is_gone_through_aside(store, log, table, known):
    for version in range(2, 1200):
        os.link(table.log / commit_name(1), table.log / commit_name(version))
    whole = await store.list_log(log)
    if known is not None:
        await store.at(log, whole, known)
    listing, commits = watch(whole)

    assert (await store.at(log, listing, 1199)).files.num_files == 2

    assert commits.looks < 10
    assert commits.looks_aside > 1000


async def test_paths_are_those_of_the_files_on_disk(store, reader, tmp_path):
    table = numbers(tmp_path).append(rows([1]))
    log = TableLog(location=location_of(table), reader=reader)

    [path] = paths_of(await store.latest(log))

    assert path == log_path(next(table.directory.glob("*.parquet")).name)


async def test_readings_are_told_apart_by_how_much_they_read(store, log, table, metrics):
    await store.latest(log)
    await store.latest(log)
    table.append(rows([3]))
    await store.latest(log)
    snapshot = await store.at(log, await store.list_log(log), 0)

    assert metrics.loads == [("cold", 2), ("refresh", 3), ("cold", 1)]
    assert snapshot.version == 0
    assert metrics.memory[0] == 3
    assert metrics.memory[1] > 0


async def test_a_log_is_not_looked_at_again_within_the_time_that_is_accepted(
    store, log, reader, table, clock
):
    first = await store.latest(log)
    table.append(rows([3]))
    reader.listed.clear()

    clock.now += timedelta(seconds=9, milliseconds=999)
    assert await store.latest(log, timedelta(seconds=10)) is first
    assert await store.latest_version(log, timedelta(seconds=10)) == 1
    assert reader.listed == []
    clock.now += timedelta(milliseconds=1)
    assert (await store.latest(log, timedelta(seconds=10))).version == 2
    assert reader.listed == [version_prefix(1)]


async def test_who_always_checks_is_not_served_what_another_accepts(store, log, table):
    await store.latest(log)
    table.append(rows([3]))

    assert (await store.latest(log, timedelta(hours=1))).version == 1
    assert await store.latest_version(log) == 2
    assert (await store.latest(log)).version == 2


async def test_a_look_that_finds_nothing_new_counts_as_one(store, log, reader, clock):
    await store.latest(log)
    clock.now += timedelta(seconds=8)
    await store.latest(log)
    reader.listed.clear()
    clock.now += timedelta(seconds=8)
    await store.latest(log, timedelta(seconds=10))

    assert reader.listed == []


async def test_the_age_of_a_look_is_counted_from_its_beginning(store, log, reader, table, clock):
    reader.may_list.clear()
    first = asyncio.create_task(store.latest(log))
    while not reader.listed:
        await asyncio.sleep(0)
    clock.now += timedelta(seconds=10)
    reader.may_list.set()
    assert (await first).version == 1
    table.append(rows([3]))

    assert (await store.latest(log, timedelta(seconds=10))).version == 2


async def test_a_look_that_finds_nothing_new_is_as_old_as_its_beginning_too(store, log, reader, table, clock):
    await store.latest(log)
    reader.listed.clear()
    reader.may_list.clear()
    again = asyncio.create_task(store.latest(log))
    while not reader.listed:
        await asyncio.sleep(0)
    clock.now += timedelta(seconds=10)
    reader.may_list.set()
    assert (await again).version == 1
    table.append(rows([3]))

    assert (await store.latest(log, timedelta(seconds=10))).version == 2


async def test_a_clock_that_is_set_back_keeps_nothing_fresh(store, log, table, clock):
    await store.latest(log)
    table.append(rows([3]))
    clock.now -= timedelta(hours=1)

    assert (await store.latest(log, timedelta(seconds=10))).version == 2


async def test_a_later_version_is_read_from_a_kept_one_on(store, log, reader, table):
    table.append(rows([3])).append(rows([4]))
    listing = await store.list_log(log)
    await store.at(log, listing, 1)
    reader.read.clear()

    snapshot = await store.at(log, listing, 3)

    assert (snapshot.version, paths_of(snapshot)) == (3, list(table.live))
    assert read_by(reader) == [commit_name(2), commit_name(3)]


async def test_an_earlier_version_is_not_read_from_a_later_one(store, log, table):
    live = list(table.live)
    table.append(rows([3])).delete_files(live[0])
    listing = await store.list_log(log)
    await store.at(log, listing, 3)

    assert paths_of(await store.at(log, listing, 1)) == live


async def test_the_version_before_a_refresh_is_still_there(store, log, reader, table):
    before = await store.latest(log)
    table.append(rows([3]))
    await store.latest(log)
    listing = await store.list_log(log)
    reader.read.clear()

    assert await store.at(log, listing, 1) is before
    assert read_by(reader) == []


async def test_a_version_that_was_read_by_number_becomes_the_latest_without_reading(store, log, reader):
    known = await store.at(log, await store.list_log(log), 1)
    reader.read.clear()

    assert await store.latest(log) is known
    assert read_by(reader) == []


async def test_a_refresh_by_more_than_a_checkpoint_reads_the_checkpoint(store, log, reader, table):
    await store.latest(log)
    for number in range(60):
        table.commit(add(f"f{number}", tags={"k": "v" * 2000}))
        table.commit(remove(f"f{number}"))
    table.checkpoint().append(rows([3]))
    reader.read.clear()

    snapshot = await store.latest(log)

    assert paths_of(snapshot) == list(table.live)
    assert read_by(reader) == [checkpoint_name(121), commit_name(122)]


async def test_a_hint_saves_listing_what_came_before_the_checkpoint(store, log, reader, table):
    table.checkpoint().append(rows([3]))
    (table.log / HINT).write_text('{"version": 1, "size": 4}')

    assert paths_of(await store.latest(log)) == list(table.live)
    assert reader.listed == [version_prefix(1)]


async def test_who_gives_up_stops_the_reading(store, log, reader):
    reader.may_read.clear()
    asking = asyncio.create_task(store.latest(log))
    while not read_by(reader):
        await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    reader.read.clear()
    reader.may_read.set()
    for _ in range(10):
        await asyncio.sleep(0)

    assert read_by(reader) == []


async def test_reading_the_history_does_not_cost_the_latest_its_place(log, reader, table, clock, metrics):
    for number in range(30):
        table.append(rows([number]))
    store = SnapshotStore(memory=400 * 1024, clock=clock, metrics=metrics)
    latest = await store.latest(log)
    await store.latest(log)
    listing = await store.list_log(log)
    for version in range(30, 0, -1):
        await store.at(log, listing, version)

    assert await store.latest(log) is latest
    assert metrics.memory[1] <= 400 * 1024


async def test_logs_are_parsed_apart_from_what_answers_requests(store, log, table):
    others = ThreadPoolExecutor(1)
    free = threading.Event()
    busy = others.submit(free.wait, 120)
    asyncio.get_running_loop().set_default_executor(others)
    try:
        snapshot = await asyncio.wait_for(store.latest(log), 60)
        table.append(rows([3]))
        refreshed = await asyncio.wait_for(store.latest(log), 60)
        listing = await store.list_log(log)
        past = await asyncio.wait_for(store.at(log, listing, 0), 60)
    finally:
        free.set()
    assert await asyncio.wrap_future(busy)

    assert (snapshot.version, refreshed.version, past.version) == (1, 2, 0)


async def test_the_commits_of_a_known_table_do_not_wait_for_logs_that_are_slow_to_parse(store, log, table):
    await store.latest(log)
    table.append(rows([3]))
    free = threading.Event()
    slow = [parse_location(f"/slow/{number}") for number in range(64)]
    busy = [asyncio.create_task(store.parsing.run(other, lambda: free.wait(120))) for other in slow]
    await asyncio.sleep(0)
    try:
        snapshot = await asyncio.wait_for(store.latest(log), 60)
    finally:
        free.set()

    assert snapshot.version == 2
    assert all(await asyncio.gather(*busy))


async def test_one_version_of_a_table_is_loaded_at_a_time(store, reader, log):
    listing = await store.list_log(log)
    reader.may_read.clear()
    asking = [asyncio.create_task(store.at(log, listing, version)) for version in (0, 1)]
    while not read_by(reader):
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    assert read_by(reader) == [commit_name(0)]

    reader.may_read.set()
    assert [snapshot.version for snapshot in await asyncio.gather(*asking)] == [0, 1]


def dense_checkpoint(count: int) -> bytes:
    """Return a small file of so many files, of each of which 36 KB are said in typed statistics."""
    stats = {"minValues": {f"{n}" * 4000: 1 for n in range(9)}}
    stated = {"protocol": {"minReaderVersion": 1}, "metaData": {"id": "t", "schemaString": "{}"}}
    adds = [{"add": {"path": str(n), "size": 1, "stats_parsed": stats}} for n in range(count)]
    return parquet(pl.concat([pl.DataFrame([stated]), pl.DataFrame(adds)], how="diagonal"))


@pytest.mark.parametrize(("count", "times"), [(500, 1), (1500, 2)])
async def test_a_small_checkpoint_that_comes_to_much_is_read_again_with_more_room(
    store, metrics, count, times
):
    reader = FaultyLogReader()
    reader.put(checkpoint_name(0), dense_checkpoint(count))
    reader.put(commit_name(0), b"")

    snapshot = await store.latest(reader.log)

    assert len(reader.files[checkpoint_name(0)]) < 1024 * 1024
    assert snapshot.files.num_files == count
    assert reader.times_read()[checkpoint_name(0)] == times
    assert metrics.fallbacks == []
