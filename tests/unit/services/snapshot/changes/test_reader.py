from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.services.snapshot.changes.feed import open_feed
from gateway.services.snapshot.changes.stream import open_stream
from tests.builders import TableBuilder, add, cdc, numbers, remove
from tests.fakes.log_reader import FakeLogReader
from tests.hypothesis_profiles import examples
from tests.unit.services.snapshot.changes.answers import (
    DELTA,
    FEED_ON,
    FEED_PROTOCOL,
    PARQUET,
    Answer,
    answer_of,
    asked_of,
    source_of,
    spliced,
    stream,
)
from tests.unit.services.snapshot.changes.naive import tell_feed, tell_stream

_NAMES = st.integers(0, 99).map(lambda number: f"part-{number}.parquet")
_DESCRIBED = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
_ACTIONS = st.one_of(
    st.builds(
        add, _NAMES, dataChange=st.booleans(), size=st.integers(0, 2**40), stats=st.just('{"numRecords":1}')
    ),
    st.builds(
        remove, _NAMES, dataChange=st.booleans(), size=st.integers(0, 2**40), partitionValues=st.just({})
    ),
    st.builds(cdc, _NAMES.map("_change_data/{}".format)),
    _DESCRIBED.map(lambda text: {"describe": text}),
)
_HISTORIES = st.lists(st.lists(_ACTIONS, max_size=5), min_size=1, max_size=7)


def build(directory: Path, history: list[list[dict[str, Any]]]) -> tuple[TableBuilder, list[list[Any]]]:
    table = numbers(directory, protocol=FEED_PROTOCOL, metadata=FEED_ON)
    commits = []
    for actions in history:
        commits.append(
            [
                {"metaData": {**table.metadata, "description": action["describe"]}}
                if "describe" in action
                else action
                for action in actions
            ]
        )
        table.commit(*commits[-1])
    return table, commits


def plain(answer: Answer) -> list[Any]:
    """Return the lines with no more of a metadata than that it is there."""
    return [
        {"metaData": line["metaData"]["version"]} if "metaData" in line else line for line in answer.lines
    ]


@settings(max_examples=examples(0.4))
@given(_HISTORIES, st.data(), st.booleans(), st.booleans())
def test_any_history_is_told_as_action_by_action(history, data, delta, with_metadata):
    first = data.draw(st.integers(0, len(history) - 1))
    last = data.draw(st.integers(first, len(history) - 1))
    capabilities = DELTA if delta else PARQUET
    asked = asked_of(first, last, capabilities=capabilities, with_metadata=with_metadata)

    async def run(directory: Path) -> None:
        table, commits = build(directory, history)
        source = await source_of(table)
        streamed = await answer_of(await open_stream(source, asked))
        fed = await answer_of(await open_feed(source, asked))
        assert plain(streamed) == tell_stream(commits, first, last, delta=delta)
        assert plain(fed) == tell_feed(commits, first, last, delta=delta, with_metadata=with_metadata)

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(run(Path(directory)))


@settings(max_examples=examples(0.4))
@given(_HISTORIES, st.integers(1, 4), st.booleans())
def test_pages_of_any_size_make_up_the_whole_answer(history, max_files, delta):
    async def run(directory: Path) -> None:
        table, _ = build(directory, history)
        source = await source_of(table)
        facts = {"capabilities": DELTA if delta else PARQUET, "with_metadata": True}
        last = len(history) - 1
        for opened in (open_stream, open_feed):
            whole = await answer_of(await opened(source, asked_of(0, last, **facts)))
            lines, start = [], None
            while True:
                asked = asked_of(0, last, **facts, start=start, max_files=max_files)
                part = await answer_of(await opened(source, asked))
                assert part.head == whole.head
                assert len(part.files) == max_files or part.stopped_at is None
                lines += part.lines
                start = part.stopped_at
                if start is None:
                    break
            assert lines == whole.lines

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(run(Path(directory)))


async def test_metadata_goes_with_the_page_of_its_first_file_and_is_told_once(tmp_path):
    table = numbers(tmp_path).commit(add("a")).describe(description="b").describe(description="c")
    table.commit({"metaData": {**table.metadata, "description": "d"}}, add("b"), add("c"))
    table.describe(description="e")

    first = await stream(table, 0, 4, max_files=1)
    second = await stream(table, 0, 4, max_files=1, start=first.stopped_at)
    third = await stream(table, 0, 4, max_files=1, start=second.stopped_at)

    assert [next(iter(line)) for line in first.lines] == ["add", "metaData", "metaData"]
    assert [next(iter(line)) for line in second.lines] == ["metaData", "add"]
    assert [next(iter(line)) for line in third.lines] == ["add", "metaData"]
    assert third.stopped_at is None


async def test_an_answer_that_ends_with_its_page_has_no_page_after_it(tmp_path):
    table = numbers(tmp_path).commit(add("a"), add("b"))

    assert (await stream(table, 0, 0, max_files=2)).stopped_at is None


async def test_small_commits_share_a_page_and_large_ones_take_several(tmp_path):
    table = numbers(tmp_path)
    for version in range(5):
        table.commit(add(f"small-{version}"))
    table.commit(*(add(f"large-{number}") for number in range(2500)))

    answer = await stream(table, 0, 5)

    assert answer.pages[0].files == 5
    assert max(page.files for page in answer.pages) <= 1000
    assert sum(page.files for page in answer.pages) == 2505
    assert all(len(spliced(page)) < 2 * 1024 * 1024 for page in answer.pages)


async def test_what_is_too_much_to_be_held_is_read_again_and_told_the_same(tmp_path):
    table = numbers(tmp_path).commit(add("a"))
    for name in ("b", "c", "d"):
        table.commit({"note": "x" * 6 * 1024 * 1024}, add(name))
    reader = FakeLogReader()
    source = await source_of(table, reader)
    reader.read.clear()

    answer = await answer_of(await open_stream(source, asked_of(0, 3)))

    assert answer.files == [("add", "a", 0), ("add", "b", 1), ("add", "c", 2), ("add", "d", 3)]
    assert [reader.read.count(f"{version:020d}.json") for version in range(4)] == [1, 1, 1, 2]


async def test_commits_are_read_once_where_they_can_be_held(tmp_path):
    table = numbers(tmp_path)
    for version in range(6):
        table.commit(add(f"file-{version}"))
    reader = FakeLogReader()
    source = await source_of(table, reader)
    reader.read.clear()

    await answer_of(await open_stream(source, asked_of(0, 5)))

    assert sorted(reader.read) == sorted(set(reader.read))


async def test_a_later_page_holds_only_what_it_tells(tmp_path):
    table = numbers(tmp_path)
    for version in range(4):
        table.commit(add(f"file-{version}"))
    first = await stream(table, 0, 3, max_files=2)

    assert first.stopped_at is not None
    assert (first.stopped_at.version, first.stopped_at.index) == (2, 0)
    rest = await stream(table, 0, 3, start=first.stopped_at)
    assert [path for _, path, _ in rest.files] == ["file-2", "file-3"]


@pytest.mark.parametrize("file_id_hash", [1, 2])
async def test_ids_follow_the_hash_that_was_asked_for(tmp_path, file_id_hash):
    table = numbers(tmp_path).commit(add("a"))

    [parquet] = (await stream(table, 0, 0, file_id_hash=file_id_hash)).lines
    [delta] = (await stream(table, 0, 0, file_id_hash=file_id_hash, capabilities=DELTA)).lines

    assert parquet["add"]["id"] == delta["file"]["id"]
    assert len(parquet["add"]["id"]) == {1: 32, 2: 64}[file_id_hash]


async def test_a_large_commit_is_shared_out_among_pages(tmp_path):
    table = numbers(tmp_path).commit(*(add(f"file-{number}") for number in range(2500)), add("last"))

    first = await stream(table, 0, 0, max_files=1500)
    second = await stream(table, 0, 0, max_files=1500, start=first.stopped_at)

    assert [page.files for page in first.pages] == [1000, 500]
    assert [path for _, path, _ in (*first.files, *second.files)] == [
        *(f"file-{number}" for number in range(2500)),
        "last",
    ]
    assert second.stopped_at is None
