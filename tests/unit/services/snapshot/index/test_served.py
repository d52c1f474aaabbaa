from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.v1 import snapshot_pb2 as pb
from tests.fakes.state_store import FakeStateStore
from tests.unit.services.snapshot.index.histories import COLUMNS, History
from tests.unit.services.snapshot.index.served import Served, bytes_of, lines_of
from tests.unit.services.snapshot.index.written import write_index


@pytest.fixture
def history() -> History:
    return make_history()


@pytest.fixture(scope="module")
def written() -> FakeStateStore:
    """An index of the history, for tests to copy."""
    made = FakeStateStore()
    asyncio.run(index(make_history(), made))
    return made


@pytest.fixture
def state(written) -> FakeStateStore:
    made = FakeStateStore()
    made.entries.update(written.entries)
    return made


def make_history() -> History:
    made = History(7, plain=True)
    for _ in range(4):
        made.commit(12)
    return made


async def index(history: History, state: FakeStateStore, name: str = "i1") -> None:
    snapshot = await Served(history.reader.log, None).store.latest(history.reader.log)
    columns = [column for column in COLUMNS if column != "at"]
    write_index(state, history.reader.log.location, snapshot, name=name, block_rows=4, columns=columns)


async def test_no_file_of_an_index_is_held(history, state):
    served = Served(history.reader.log, state)
    snapshot = await served.store.latest(history.reader.log)
    assert snapshot.files.height == 0
    assert snapshot.num_files == len(history.live)
    assert snapshot.size == sum(add["size"] for add in history.live.values())


async def test_blocks_are_held_up_to_their_bound(history, state):
    served = Served(history.reader.log, state, blocks=1)
    await served.query()
    # What is not held is read again.
    state.calls.clear()
    await served.query()
    assert len(state.calls) > 3

    shelf, snapshot = served.store.shelf, await served.store.latest(history.reader.log)
    assert shelf is not None
    assert snapshot.indexed is not None
    index = snapshot.indexed.index
    state.calls.clear()
    for number in reversed(range(index.zones.height)):
        await shelf.load(index, number)
    # Only the last block was held.
    assert len(state.calls) == index.zones.height - 1


async def test_hints_leave_out_blocks_that_are_not_even_read(history, state):
    served = Served(history.reader.log, state)
    await served.store.latest(history.reader.log)
    state.calls.clear()
    answer = await served.query(predicate_hints=["a > 1000"])
    expected = await Served(history.reader.log, None).query(predicate_hints=["a > 1000"])
    assert lines_of(answer) == lines_of(expected)
    [(read, skipped)] = served.metrics.blocks
    assert skipped > 0
    assert len({key for _, key in state.calls}) == read
    assert served.metrics.pruned == [(len(expected.lines), len(history.live) - len(expected.lines))]


async def test_a_page_starts_with_the_block_that_holds_its_key(history, state):
    served = Served(history.reader.log, state, blocks=1)
    pages = [await served.query(max_files=4)]
    state.calls.clear()
    token = pages[0].end.next_page_token
    await served.query(max_files=4, page_token=token)
    # It has one file more than a page, to know whether others follow, and the next is on its way.
    assert len({key for _, key in state.calls}) <= 3


async def test_a_version_of_the_past_is_answered_by_an_older_index(history, state):
    history.commit(5)
    history.commit(5)
    at = pb.TableAt(version=history.version - 1)
    served, direct = Served(history.reader.log, state), Served(history.reader.log, None)
    found, expected = await served.query(at=at), await direct.query(at=at)
    assert (found.head.lines, lines_of(found)) == (expected.head.lines, lines_of(expected))
    assert "used" in served.metrics.indexes


async def test_a_version_before_the_index_is_read_from_the_log(history, state):
    at = pb.TableAt(version=1)
    served = Served(history.reader.log, state)
    found, expected = await served.query(at=at), await Served(history.reader.log, None).query(at=at)
    assert lines_of(found) == lines_of(expected)
    assert "later" in served.metrics.indexes


async def test_a_page_goes_on_in_its_version_whatever_is_committed(history, state):
    served, direct = Served(history.reader.log, state), Served(history.reader.log, None)
    asked = {"max_files": 5}
    first = await served.query(**asked)
    expected = await direct.pages(**asked)
    history.commit(9)
    found = [first]
    while found[-1].end.next_page_token:
        found.append(await served.query(**asked, page_token=found[-1].end.next_page_token))
    assert bytes_of(found) == bytes_of(expected)


async def test_a_refresh_token_of_one_service_pins_the_other(history, state):
    served, direct = Served(history.reader.log, state), Served(history.reader.log, None)
    token = (await served.query(include_refresh_token=True)).end.refresh_token
    history.commit(9)
    await served.query()
    found, expected = await served.query(refresh_token=token), await direct.query(refresh_token=token)
    assert found.head.version == history.version - 1
    assert lines_of(found) == lines_of(expected)


@pytest.mark.parametrize("limit", [0, 1, 10, 10_000])
async def test_a_limit_is_reached_and_no_more_than_that(history, state, limit):
    history.commit(5)
    served = Served(history.reader.log, state)
    files = [action for _, action in (await served.query(limit_hint=limit)).actions]
    everything = len((await served.query()).lines)
    records = [_records(file) for file in files]
    assert len(files) == everything or sum(records) >= limit
    assert sum(records[:-1]) < limit or not records


async def test_changes_find_in_the_index_what_removes_do_not_say(history, state):
    for _ in range(3):
        history.commit(9)
    # Removed files have no size in this log.
    served, direct = Served(history.reader.log, state), Served(history.reader.log, None)
    since = history.version - 2
    found, expected = await served.changes(since), await direct.changes(since)
    assert lines_of(found) == lines_of(expected)
    listing = await served.store.list_log(served.log)
    assert (await served.store.at(served.log, listing, since - 1)).indexed is not None


async def test_a_newer_index_takes_the_place_of_one_that_has_grown_heavy(history, state):
    served = Served(history.reader.log, state, heavy=1)
    await served.query()
    history.commit(9)
    await served.query()
    first = (await served.store.latest(history.reader.log)).indexed
    await index(history, state, "i2")
    history.commit(3)
    found = await served.query()
    assert lines_of(found) == lines_of(await Served(history.reader.log, None).query())
    second = (await served.store.latest(history.reader.log)).indexed
    assert first is not None
    assert second is not None
    assert (first.index.manifest.name, second.index.manifest.name) == ("i1", "i2")


async def test_a_newer_index_takes_the_place_of_one_that_is_far_behind(history, state):
    served = Served(history.reader.log, state, many_steps=10)
    await served.query()
    for _ in range(3):
        history.commit(20)
    await index(history, state, "i2")
    found = await served.query()
    assert lines_of(found) == lines_of(await Served(history.reader.log, None).query())
    indexed = (await served.store.latest(history.reader.log)).indexed
    assert indexed is not None
    assert indexed.index.manifest.name == "i2"


async def test_without_a_newer_index_the_log_takes_the_place_of_one_that_is_far_behind(history, state):
    served = Served(history.reader.log, state, many_steps=10)
    await served.query()
    for _ in range(3):
        history.commit(40)
    found = await served.query()
    assert lines_of(found) == lines_of(await Served(history.reader.log, None).query())
    assert (await served.store.latest(history.reader.log)).indexed is None
    assert served.metrics.indexes == ["used", "old"]


async def test_what_is_rendered_of_a_block_is_kept_until_a_commit_touches_it(history, state):
    served = Served(history.reader.log, state)
    await served.query()
    served.metrics.segments.clear()
    await served.query()
    assert all(served.metrics.segments)
    history.commit(6)
    served.metrics.segments.clear()
    await served.query()
    assert 0 < sum(served.metrics.segments) < len(served.metrics.segments)


def _records(add: dict[str, Any]) -> int:
    try:
        stats = json.loads(str(add.get("stats", "{}")))
    except ValueError:
        return 0
    deleted = (add.get("deletionVector") or {}).get("cardinality", 0)
    return int(max(stats.get("numRecords", 0), 0) - deleted)
