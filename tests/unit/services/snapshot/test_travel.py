from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gateway.demo.checkpoint import to_checkpoint
from gateway.domain.log import checkpoint_name, commit_name
from gateway.errors import InvalidArgument, Unsupported
from gateway.services.snapshot.state.store import SnapshotStore
from gateway.services.snapshot.travel import find_pinned, find_range, find_version, find_view
from gateway.v1.snapshot_pb2 import TableAt
from tests.builders import add
from tests.cases import each_case
from tests.fakes.faulty_log_reader import STARTED_AT, FaultyLogReader
from tests.fakes.grants import GRANT, NOON
from tests.fakes.snapshot_metrics import FakeSnapshotMetrics

_LATEST = TableAt()
_MINUTE = timedelta(minutes=1)
_START_MS = 1_735_689_600_000


def text(minutes: float) -> str:
    """Return the time so many minutes after the first commit."""
    return (STARTED_AT + minutes * _MINUTE).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def version(number: int) -> TableAt:
    return TableAt(version=number)


def time(minutes: float) -> TableAt:
    return TableAt(timestamp=text(minutes))


class Table:
    """A log whose nth commit was made n minutes after the first, and adds ``n``."""

    def __init__(self, commits: int = 5, /, **configuration: str) -> None:
        self.reader = FaultyLogReader()
        self.store = SnapshotStore(memory=10**9, clock=lambda: NOON, metrics=FakeSnapshotMetrics())
        self.grant = GRANT
        self.head: list[dict[str, Any]] = [
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
            {"metaData": {"id": "t", "schemaString": "{}", "configuration": configuration}},
        ]
        for number in range(commits):
            self.commit(number, *(self.head if number == 0 else ()))

    def commit(self, number: int, *actions: dict[str, Any]) -> None:
        # What commits say themselves is ten minutes later than their files.
        info = {"commitInfo": {"inCommitTimestamp": _START_MS + (number + 10) * 60_000}}
        content = "\n".join(json.dumps(action) for action in (info, *actions, add(str(number))))
        self.reader.put(commit_name(number), content.encode(), STARTED_AT + number * _MINUTE)

    def checkpoint(self, number: int) -> None:
        [content] = to_checkpoint([*self.head, *(add(str(each)) for each in range(number + 1))])
        self.reader.put(checkpoint_name(number), content)

    async def view(self, at: TableAt):
        return await find_view(self.store, self.reader.log, self.grant, at)

    async def version_from(self, starting_at: str) -> int:
        return await find_version(self.store, self.reader.log, self.grant, starting_at)

    async def range(self, start: TableAt, end: TableAt = _LATEST):
        return await find_range(self.store, self.reader.log, self.grant, start, end)


async def test_without_a_point_in_time_the_table_is_as_it_is():
    view = await Table().view(_LATEST)

    assert (view.snapshot.version, view.is_historical, view.timestamp) == (4, False, None)


async def test_the_table_may_be_as_old_as_its_grant_accepts():
    table = Table()
    table.grant = replace(GRANT, freshness=timedelta(seconds=10))
    assert (await table.view(_LATEST)).snapshot.version == 4
    table.commit(5)

    assert (await table.view(_LATEST)).snapshot.version == 4
    assert await table.version_from("") == 4
    table.grant = GRANT
    assert await table.version_from("") == 5
    assert (await table.view(_LATEST)).snapshot.version == 5


@each_case(
    ("at", "found"),
    [(version(0), 0), (version(4), 4), (time(0), 0), (time(2.99), 2), (time(3), 3), (time(4), 4)],
)
async def test_a_version_or_a_time_is_a_version_with_its_time(at, found):
    view = await Table().view(at)

    assert (view.snapshot.version, view.snapshot.files.num_files) == (found, found + 1)
    assert view.is_historical
    assert view.timestamp == _START_MS + found * 60_000


@each_case(
    ("at", "message"),
    [
        (version(-1), "greater than or equal to 0"),
        (version(5), "version 5 of table retail.sales.orders is after the latest available version 4"),
        (time(4.1), "is after the latest available version 4, .*; leave it out to read the latest version"),
        (time(-0.1), r"greater than or equal to 2025-01-01T00:00:00\.000Z"),
        (TableAt(timestamp="yesterday"), "is not a timestamp"),
    ],
)
async def test_a_point_outside_of_the_history_is_refused(at, message):
    with pytest.raises(InvalidArgument, match=message):
        await Table().view(at)


@pytest.mark.parametrize("at", [version(1), time(1)])
async def test_a_table_without_history_sharing_refuses_politely(at):
    table = Table()
    table.grant = replace(GRANT, history_shared=False)
    refusal = (
        "Reading table by version or timestamp is not supported "
        f"because history sharing is not enabled on table {GRANT.table}"
    )

    for asked in (table.view(at), table.range(at), table.version_from(text(1))):
        with pytest.raises(Unsupported, match=refusal):
            await asked
    assert (await table.view(_LATEST)).snapshot.version == 4
    assert await table.version_from("") == 4


@each_case("at", [version(0), version(1), time(0), time(1.9), time(-5)])
async def test_what_was_before_the_start_version_is_not_shared(at):
    table = Table()
    table.grant = replace(GRANT, start_version=2)

    with pytest.raises(InvalidArgument, match="You can only query table data since version 2"):
        await table.view(at)


async def test_what_was_since_the_start_version_is_shared():
    table = Table()
    table.grant = replace(GRANT, start_version=2)

    assert (await table.view(version(2))).snapshot.version == 2
    assert (await table.view(time(2.5))).snapshot.version == 2


async def test_a_start_version_that_is_still_to_come_shares_nothing_of_the_past():
    table = Table()
    table.grant = replace(GRANT, start_version=9)

    for asked in (table.view(version(4)), table.view(time(4)), table.range(version(4)), table.range(time(1))):
        with pytest.raises(InvalidArgument, match="You can only query table data since version 9"):
            await asked


@each_case(("minutes", "found"), [(-99, 0), (0, 0), (0.1, 1), (3, 3), (4, 4)])
async def test_the_version_at_or_after_a_time(minutes, found):
    assert await Table().version_from(text(minutes)) == found


async def test_a_time_after_the_latest_version_has_none():
    with pytest.raises(InvalidArgument, match="is after the latest available version 4"):
        await Table().version_from(text(4.1))


async def test_the_version_at_or_after_a_time_is_one_that_is_shared():
    table = Table()
    table.grant = replace(GRANT, start_version=2)

    assert await table.version_from(text(-99)) == 2


async def test_commits_that_say_when_they_were_made_are_believed():
    table = Table(5, **{"delta.enableInCommitTimestamps": "true"})

    assert (await table.view(time(12.5))).snapshot.version == 2
    assert (await table.view(version(3))).timestamp == _START_MS + 13 * 60_000
    assert await table.version_from(text(12.5)) == 3
    found = await table.range(time(11), time(12.9))
    assert (found.first, found.last) == (1, 2)
    assert [found.history.timestamp_of(each) for each in (1, 2)] == [_START_MS + n * 60_000 for n in (11, 12)]


async def test_the_time_of_an_old_version_does_not_take_the_latest():
    table = Table()
    table.reader.put(commit_name(4), b"nonsense")

    assert (await table.view(version(2))).timestamp == _START_MS + 2 * 60_000


_TELLING = {"delta.enableInCommitTimestamps": "true", "delta.inCommitTimestampEnablementVersion": "2"}


def turn(table: Table, number: int, **configuration: str) -> None:
    """Set the properties of the table by a commit."""
    metadata = {"metaData": {"id": "t", "schemaString": "{}", "configuration": configuration}}
    table.commit(number, metadata)


async def times_of(table: Table, versions: range) -> list[list[float]]:
    """Return in minutes when versions were made: as each is read, and as a range of them is."""
    found = await table.range(version(versions[0]), version(versions[-1]))
    read = [(await table.view(version(number))).timestamp for number in versions]
    ranged = [found.history.timestamp_of(number) for number in versions]
    return [[(ms - _START_MS) / 60_000 for ms in times] for times in (read, ranged)]


async def test_a_version_has_one_time_after_commits_tell_theirs():
    table = Table(5)
    turn(table, 2, **_TELLING)

    assert await times_of(table, range(5)) == [[0, 1, 12, 13, 14]] * 2


async def test_a_version_has_one_time_after_commits_tell_theirs_no_longer():
    table = Table(6)
    turn(table, 2, **_TELLING)
    turn(table, 4)

    assert await times_of(table, range(6)) == [[0, 1, 2, 3, 4, 5]] * 2


async def test_a_version_has_one_time_after_commits_tell_theirs_anew():
    table = Table(7)
    turn(table, 2, **_TELLING)
    turn(table, 4)
    turn(table, 5, **{**_TELLING, "delta.inCommitTimestampEnablementVersion": "5"})

    assert await times_of(table, range(7)) == [[0, 1, 2, 3, 4, 15, 16]] * 2


async def test_a_commit_that_tells_its_time_is_believed_where_the_latest_cannot_be_read():
    table = Table(5, **{"delta.enableInCommitTimestamps": "true"})
    table.reader.put(commit_name(4), b"nonsense")

    assert (await table.view(version(2))).timestamp == _START_MS + 12 * 60_000


async def test_a_version_whose_commit_is_gone_has_no_time():
    table = Table()
    table.checkpoint(4)
    table.reader.remove(*(commit_name(number) for number in range(5)))

    assert (await table.view(version(4))).timestamp is None
    with pytest.raises(Unsupported, match="no longer holds the commits that tell"):
        await table.view(time(4))


@each_case(
    ("start", "end", "found"),
    [
        (version(0), _LATEST, (0, 4)),
        (version(2), version(2), (2, 2)),
        (version(1), version(3), (1, 3)),
        (version(1), version(99), (1, 4)),
        (version(4), _LATEST, (4, 4)),
        (time(-9), _LATEST, (0, 4)),
        (time(0.5), time(3.5), (1, 3)),
        (time(1), time(3), (1, 3)),
        (time(1), time(99), (1, 4)),
        (version(1), time(2), (1, 2)),
        (time(1), version(2), (1, 2)),
    ],
)
async def test_a_range_includes_both_of_its_ends(start, end, found):
    first, last, listing, history = await Table().range(start, end)

    assert (first, last) == found
    assert set(range(first, last + 1)) <= set(listing.commits)
    assert history.timestamp_of(last) == _START_MS + last * 60_000


@each_case(
    ("start", "end", "message"),
    [
        (
            version(5),
            _LATEST,
            "version 5 of table retail.sales.orders is after the latest available version 4",
        ),
        (time(4.5), _LATEST, "is after the latest available version 4"),
        (version(3), version(2), "ends with version 2, before its start, version 3"),
        (version(3), version(-1), "ends with version -1, before its start"),
        (time(2.1), time(2.9), "ends with version 2, before its start, version 3"),
        (version(0), time(-1), "before the earliest available version 0"),
        (version(-1), _LATEST, "greater than or equal to 0"),
        (_LATEST, _LATEST, "takes a startingVersion or a startingTimestamp"),
    ],
)
async def test_a_range_that_cannot_be_is_refused(start, end, message):
    with pytest.raises(InvalidArgument, match=message):
        await Table().range(start, end)


async def test_a_range_begins_with_the_start_version_at_the_earliest():
    table = Table()
    table.grant = replace(GRANT, start_version=2)

    with pytest.raises(InvalidArgument, match="You can only query table data since version 2"):
        await table.range(version(1))
    assert (await table.range(time(-9)))[:2] == (2, 4)


async def test_a_range_whose_commits_are_gone_is_refused():
    table = Table()
    table.checkpoint(2)
    table.reader.remove(commit_name(0), commit_name(1))

    with pytest.raises(InvalidArgument, match="changes of version 1, only those since version 2"):
        await table.range(version(1))
    assert (await table.range(version(2)))[:2] == (2, 4)


async def pinned(table: Table, number: int, at: TableAt = _LATEST):
    return await find_pinned(table.store, table.reader.log, table.grant, at, number)


@each_case("number", [0, 3, 4])
@each_case("history_shared", [True, False])
async def test_a_pinned_version_is_shown_as_the_latest_that_it_was(number, history_shared):
    table = Table()
    table.grant = replace(GRANT, history_shared=history_shared)

    view = await pinned(table, number)

    assert (view.snapshot.version, view.snapshot.files.num_files) == (number, number + 1)
    assert (view.is_historical, view.timestamp) == (False, None)


@pytest.mark.parametrize("at", [version(3), time(3.5), time(1)])
async def test_a_pinned_version_of_the_past_is_shown_as_such_whatever_its_time_means_by_now(at):
    view = await pinned(Table(), 3, at)

    assert (view.snapshot.version, view.is_historical) == (3, True)
    assert view.timestamp == _START_MS + 3 * 60_000


async def test_a_pinned_version_of_the_past_takes_history_that_is_shared():
    table = Table()
    table.grant = replace(GRANT, history_shared=False)

    with pytest.raises(Unsupported, match="Reading table by version or timestamp is not supported"):
        await pinned(table, 3, version(3))


async def test_a_pinned_version_that_is_the_latest_takes_no_look_at_the_whole_log():
    table = Table()
    await table.view(_LATEST)
    table.reader.listed.clear()
    table.reader.read.clear()

    await pinned(table, 4)

    assert set(table.reader.listed) == {commit_name(4).removesuffix(".json")}
    assert table.reader.read == []


async def test_a_pinned_version_is_found_however_old_an_answer_about_the_latest_may_be():
    table = Table()
    table.grant = replace(GRANT, freshness=timedelta(hours=1))
    await table.view(_LATEST)
    table.commit(5)

    # Another process has seen it already.
    assert (await pinned(table, 5)).snapshot.version == 5
    assert (await pinned(table, 4)).snapshot.version == 4


@pytest.mark.parametrize("at", [_LATEST, version(9)])
async def test_a_pinned_version_that_the_log_has_not_come_to_is_refused(at):
    with pytest.raises(
        InvalidArgument,
        match=r"version 9 of table retail.* is after the latest available version 4",
    ):
        await pinned(Table(), 9, at)


@pytest.mark.parametrize("at", [_LATEST, version(1)])
async def test_a_pinned_version_that_is_no_longer_shared_is_refused(at):
    table = Table()
    table.grant = replace(GRANT, start_version=2)

    with pytest.raises(InvalidArgument, match="You can only query table data since version 2"):
        await pinned(table, 1, at)
    assert (await pinned(table, 2)).snapshot.version == 2


@pytest.mark.parametrize("at", [_LATEST, version(1)])
async def test_a_pinned_version_whose_files_are_gone_is_refused_by_name(at):
    table = Table()
    table.checkpoint(3)
    table.reader.remove(*(commit_name(number) for number in range(3)))

    with pytest.raises(Unsupported, match=commit_name(0)):
        await pinned(table, 1, at)
    assert (await pinned(table, 3)).snapshot.version == 3


@pytest.mark.parametrize("at", [_LATEST, version(4)])
async def test_a_pinned_version_does_not_take_what_came_after_it(at):
    table = Table()
    await table.view(_LATEST)
    table.reader.put(commit_name(5), b"nonsense")

    assert (await pinned(table, 4, at)).snapshot.version == 4


async def test_a_listing_that_misses_a_commit_moves_no_beginning():
    table = Table()
    missing = [lambda files: [file for file in files if file.name != commit_name(2)]]

    table.reader.lies = list(missing)
    assert await table.version_from(text(-1)) == 0
    table.reader.lies = list(missing)
    assert (await table.range(time(1)))[:2] == (1, 4)
    table.reader.lies = list(missing)
    assert (await table.view(time(1))).snapshot.version == 1


async def test_a_table_that_has_not_come_to_its_first_shared_version_is_not_read():
    table = Table()
    table.grant = replace(GRANT, start_version=9)
    refused = pytest.raises(InvalidArgument, match="You can only query table data since version 9")

    with refused:
        await table.view(_LATEST)
    with refused:
        await find_version(table.store, table.reader.log, table.grant, "")
    with refused:
        await pinned(table, 4)


async def test_a_range_knows_the_times_of_all_its_versions():
    table = Table(5, **{"delta.enableInCommitTimestamps": "true"})

    versions = await table.range(version(1), version(3))

    times = [versions.history.timestamp_of(number) for number in range(1, 4)]
    assert times == [_START_MS + (number + 10) * 60_000 for number in range(1, 4)]
