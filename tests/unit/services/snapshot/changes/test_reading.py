from __future__ import annotations

import pytest

from gateway.errors import InvalidArgument
from gateway.services.snapshot.changes.reading import ChangeRange, CommitReader
from tests.builders import add, numbers
from tests.fakes.log_reader import FakeLogReader
from tests.unit.services.snapshot.changes.answers import source_of
from tests.unit.services.snapshot.log.watched import watch


async def reader_of(table, reader=None):
    source = await source_of(table, reader)
    return CommitReader(source.log, source.listing, source.history)


async def test_a_long_range_is_read_in_parts_and_in_order(tmp_path):
    table = numbers(tmp_path)
    for version in range(300):
        table.commit(add(f"file-{version}"))
    reader = await reader_of(table)

    batches = [batch async for batch in reader.read(ChangeRange(first=10, last=299))]

    assert [len(batch.commits) for batch in batches] == [256, 34]
    paths = [path for batch in batches for commit in batch.commits for path in commit.add["path"]]
    assert paths == [f"file-{version}" for version in range(10, 300)]


async def test_large_commits_are_not_read_together(tmp_path):
    table = numbers(tmp_path).create()
    for name in ("a", "b"):
        table.commit({"note": "x" * 5 * 1024 * 1024}, add(name))
    reader = await reader_of(table)

    batches = [batch async for batch in reader.read(ChangeRange(first=1, last=2))]

    assert [[commit.version for commit in batch.commits] for batch in batches] == [[1], [2]]


async def test_nothing_is_read_of_a_range_that_is_not_asked_for_to_the_end(tmp_path):
    table = numbers(tmp_path)
    for version in range(300):
        table.commit(add(f"file-{version}"))
    fake = FakeLogReader()
    reader = await reader_of(table, fake)
    fake.read.clear()

    async for _ in reader.read(ChangeRange(first=0, last=299)):
        break

    assert len(fake.read) == 256


async def test_a_gap_in_the_log_is_told_with_the_version_after_it(tmp_path):
    table = numbers(tmp_path).commit(add("a")).commit(add("b")).checkpoint().commit(add("c")).checkpoint()
    table.commit(add("d"))
    (table.log / "00000000000000000001.json").unlink()
    reader = await reader_of(table)

    reader.require(ChangeRange(first=2, last=3))
    with pytest.raises(InvalidArgument, match="changes of version 1; the earliest available version is 2"):
        reader.require(ChangeRange(first=0, last=3))
    # Its commit is there, and with the one after it gone nothing tells when it was made.
    with pytest.raises(InvalidArgument, match=r"changes of version 0$"):
        reader.require(ChangeRange(first=0, last=0))


async def test_a_version_that_only_a_checkpoint_knows_has_no_changes_to_tell(tmp_path):
    table = numbers(tmp_path).commit(add("a")).checkpoint()
    (table.log / "00000000000000000000.json").unlink()
    reader = await reader_of(table)

    with pytest.raises(InvalidArgument, match="no longer holds the changes of version 0"):
        reader.require(ChangeRange(first=0, last=0))


async def test_what_a_range_requires_is_known_without_a_look_at_its_commits(tmp_path):
    table = numbers(tmp_path)
    for version in range(5):
        table.commit(add(f"file-{version}"))
    source = await source_of(table)
    listing, commits = watch(source.listing)
    reader = CommitReader(source.log, listing, source.history)

    reader.require(ChangeRange(first=0, last=4))
    with pytest.raises(InvalidArgument, match=r"changes of version 1000000000000000$"):
        reader.require(ChangeRange(first=0, last=10**15))

    assert commits.looks == 0
