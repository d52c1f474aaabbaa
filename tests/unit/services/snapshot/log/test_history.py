from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.log import checkpoint_name, commit_name
from gateway.domain.window import EPOCH
from gateway.errors import InvalidArgument, Unavailable, Unsupported
from gateway.services.snapshot.log.history import History, read_history
from gateway.services.snapshot.log.listing import list_log
from gateway.services.snapshot.log.metadata import Metadata
from tests.cases import each_case
from tests.fakes.faulty_log_reader import FaultyLogReader


def at(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def metadata(enabled_from: int | None = None, /, **changes: str) -> Metadata:
    """Return the metadata of a table whose commits have had times of their own since a version, if any."""
    configuration = {"delta.enableInCommitTimestamps": "true"} if enabled_from is not None else {}
    if enabled_from:
        configuration["delta.inCommitTimestampEnablementVersion"] = str(enabled_from)
    return Metadata(id="t", schema_string="{}", configuration={**configuration, **changes})


def reader_of(times: dict[int, int], in_commits: dict[int, int] | None = None) -> FaultyLogReader:
    """Return a log of commits, by the times of their files and by what they say themselves."""
    reader = FaultyLogReader()
    for version, ms in times.items():
        told = (in_commits or {}).get(version)
        info = {"operation": "WRITE", **({} if told is None else {"inCommitTimestamp": told})}
        reader.put(commit_name(version), json.dumps({"commitInfo": info}).encode(), at(ms))
    return reader


async def history_in(reader: FaultyLogReader, enabled_from: int | None = None) -> History:
    history = await read_history(reader.log, await list_log(reader.log), metadata(enabled_from))
    assert history is not None
    return history


async def history_of(times: dict[int, int]) -> History:
    return await history_in(reader_of(times))


def timestamps(history: History) -> list[int | None]:
    return [history.timestamp_of(version) for version in range(history.first, history.latest + 1)]


async def test_a_time_between_two_commits_is_the_earlier_version():
    history = await history_of({0: 1000, 1: 2000, 2: 3000})

    assert await history.version_as_of(at(2999)) == 1
    assert await history.version_as_of(at(2000)) == 1
    assert await history.version_as_of(at(3000)) == 2


async def test_a_time_before_the_first_commit_has_no_version():
    history = await history_of({0: 1000, 1: 2000})

    with pytest.raises(InvalidArgument, match=r"greater than or equal to 1970-01-01T00:00:01\.000Z"):
        await history.version_as_of(at(999))


@pytest.mark.parametrize("lookup", ["version_as_of", "version_from"])
async def test_a_time_after_the_last_commit_has_no_version(lookup):
    history = await history_of({0: 1000, 1: 2000})

    with pytest.raises(InvalidArgument, match="is after the latest available version 1"):
        await getattr(history, lookup)(at(2001))
    assert await history.ends_before(at(2001))
    assert not await history.ends_before(at(2000))


async def test_the_first_version_from_a_time_on_may_be_the_first_of_all():
    history = await history_of({0: 1000, 1: 2000})

    assert await history.version_from(at(0)) == 0
    assert await history.version_from(at(1000)) == 0
    assert await history.version_from(at(1001)) == 1


@each_case(("since", "first"), [(0, 1), (1, 1), (2, 2), (9, 3)])
async def test_a_part_of_a_history_begins_with_a_version_that_is_there(since, first):
    history = await history_of({1: 1000, 2: 2000, 3: 3000})

    assert await history.version_from(at(0), since) == first
    assert await history.begins_after(at(first * 1000 - 1), since)
    with pytest.raises(InvalidArgument, match=f"the earliest available version {first}"):
        await history.version_as_of(at(0), since)


async def test_a_commit_whose_file_is_older_than_the_one_before_counts_as_later():
    assert timestamps(await history_of({0: 5000, 1: 3000, 2: 4000, 3: 9000})) == [5000, 5001, 5002, 9000]


async def test_only_the_commits_since_the_last_gap_count():
    history = await history_of({0: 1000, 2: 3000, 3: 4000})

    assert history.first == 2
    assert history.timestamp_of(0) is None
    assert history.timestamp_of(3) == 4000
    assert history.timestamp_of(4) is None


async def test_a_version_known_by_a_checkpoint_alone_has_no_history():
    reader = FaultyLogReader()
    reader.put(checkpoint_name(3), b"")

    assert await read_history(reader.log, await list_log(reader.log), metadata()) is None


async def test_a_time_in_another_zone_is_the_same_time():
    history = await history_of({0: 1000, 1: 2000})
    elsewhere = at(2000).astimezone(UTC).astimezone()

    assert await history.version_as_of(elsewhere) == 1


async def test_a_commit_is_as_old_as_it_says_where_the_table_has_it_so():
    reader = reader_of({0: 9000, 1: 9000, 2: 9000}, {0: 100, 1: 200, 2: 300})
    history = await history_in(reader, 0)

    assert await history.version_as_of(at(299)) == 1
    assert await history.version_from(at(201)) == 2
    await history.load(range(3))
    assert timestamps(history) == [100, 200, 300]


async def test_the_times_of_many_commits_are_read_some_at_a_time():
    reader = reader_of(dict.fromkeys(range(2500), 9000), {version: 100 + version for version in range(2500)})
    history = await history_in(reader, 0)
    others, waiting = len(asyncio.all_tasks()), []
    reader.before_read = lambda _: waiting.append(len(asyncio.all_tasks()) - others)

    await history.load(range(2500))

    assert timestamps(history) == [100 + version for version in range(2500)]
    assert len(waiting) == 2500
    assert max(waiting) <= 1024


async def test_the_versions_are_not_looked_at_one_by_one_where_all_are_as_old_as_their_files():
    history = await history_of({0: 1000, 1: 2000})
    versions = iter(range(2))

    await history.load(versions)

    assert list(versions) == [0, 1]
    assert timestamps(history) == [1000, 2000]


async def test_commits_from_before_that_are_as_old_as_their_files():
    reader = reader_of({0: 100, 1: 90, 2: 9000, 3: 9000}, {2: 300, 3: 400})
    history = await history_in(reader, 2)

    await history.load(range(4))
    assert timestamps(history) == [100, 101, 300, 400]
    assert [await history.version_as_of(at(ms)) for ms in (100, 101, 299, 300, 399, 400)] == [
        0,
        1,
        1,
        2,
        2,
        3,
    ]
    assert [await history.version_from(at(ms)) for ms in (0, 101, 102, 300, 301)] == [0, 1, 2, 2, 3]


async def test_a_table_that_had_it_and_has_it_no_more_goes_by_its_files():
    reader = reader_of({0: 1000, 1: 2000}, {0: 5, 1: 6})
    off = metadata(None, **{"delta.enableInCommitTimestamps": "false"})
    history = await read_history(reader.log, await list_log(reader.log), off)

    assert history is not None
    assert timestamps(history) == [1000, 2000]
    assert reader.read == []


@each_case("stated", ["", "x", "-1", "1.5", "9" * 5000])
async def test_a_version_that_makes_no_sense_counts_as_the_first(stated):
    reader = reader_of({0: 1000}, {0: 5})
    told = metadata(0, **{"delta.inCommitTimestampEnablementVersion": stated})
    history = await read_history(reader.log, await list_log(reader.log), told)

    assert history is not None
    assert await history.version_as_of(at(5)) == 0


async def test_a_search_reads_few_commits_and_none_twice():
    reader = reader_of(dict.fromkeys(range(1000), 0), {version: version * 10 for version in range(1000)})
    history = await history_in(reader, 0)

    assert await history.version_as_of(at(5555)) == 555
    assert await history.version_from(at(5555)) == 556
    assert len(reader.read) < 20
    assert set(reader.times_read().values()) == {1}


async def test_a_commit_that_does_not_say_it_is_named():
    history = await history_in(reader_of({0: 1000, 1: 2000}, {0: 5}), 0)

    with pytest.raises(Unsupported, match=r"00000000000000000001\.json does not say when it was made"):
        await history.load([0, 1])


async def test_a_commit_that_is_gone_tells_nothing():
    reader = reader_of({0: 1000, 1: 2000}, {0: 5, 1: 6})
    history = await history_in(reader, 0)
    reader.remove(commit_name(1))

    with pytest.raises(Unsupported, match="no longer holds the commits"):
        await history.version_as_of(at(5))


async def test_a_store_that_does_not_answer_is_unavailable():
    reader = reader_of({0: 1000}, {0: 5})
    history = await history_in(reader, 0)
    reader.outage = Unavailable("down")

    with pytest.raises(Unavailable):
        await history.load([0])


@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=20),
    st.lists(st.integers(1, 10**5), max_size=20),
    st.integers(-10, 4 * 10**6),
    st.integers(0, 40),
)
async def test_lookups_agree_with_a_search_through_the_list(files, gaps, asked, since):
    enabled_from = len(files)
    # By the rules, the first that says it is later than the files before it.
    start = max(files) + len(files)
    told = {enabled_from + n: start + sum(gaps[: n + 1]) for n in range(len(gaps))}
    times = dict(enumerate([*files, *(0 for _ in gaps)]))
    history = await history_in(reader_of(times, told), enabled_from)
    await history.load(range(history.latest + 1))
    known = [(version, ms) for version, ms in enumerate(timestamps(history)) if ms is not None]
    shared = [pair for pair in known if pair[0] >= min(since, history.latest)]

    assert len(known) == len(times)
    assert [ms for _, ms in known] == sorted({ms for _, ms in known})
    before = [version for version, ms in shared if ms <= asked]
    after = [version for version, ms in shared if ms >= asked]
    if before and after:
        assert await history.version_as_of(at(asked), since) == before[-1]
    if after:
        assert await history.version_from(at(asked), since) == after[0]
