from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import timedelta

import polars as pl
import pytest

from gateway.domain.log import commit_name
from gateway.errors import GatewayError, InvalidArgument, Unsupported
from gateway.services.snapshot.answer.batch import MAX_FILES
from gateway.v1 import snapshot_pb2 as pb
from tests.builders import add, cdc, numbers, remove, rows, with_features
from tests.unit.services.snapshot.world import (
    BOTH,
    DELTA,
    PAGE_LIFE,
    PARQUET,
    World,
    at_time,
    at_version,
    count_work,
    iso,
)

_MOMENT = timedelta(milliseconds=1)
_SIZED = {"size": 1, "partitionValues": {}}
_BAD_PAGE = "the page token is not valid for this request, or has expired"
_FEED = {"minReaderVersion": 1, "minWriterVersion": 4}
_FEED_ON = {"configuration": {"delta.enableChangeDataFeed": "true"}}

# What the commits of ``table`` come to, as a stream and as a feed.
_STREAMED = [
    ("add", "b", 0),
    ("add", "a", 0),
    ("add", "d", 1),
    ("remove", "b", 1),
    ("add", "c", 3),
    ("add", "e", 4),
    ("add", "f", 4),
]
_FED = [
    ("add", "b", 0),
    ("add", "a", 0),
    ("cdf", "_change_data/x", 1),
    ("cdf", "_change_data/y", 1),
    ("add", "c", 3),
    ("add", "e", 4),
    ("add", "f", 4),
]


@pytest.fixture
def world():
    return World()


@pytest.fixture
def table(tmp_path):
    """Five versions: of files, of changed rows, of nothing but a rewrite, of metadata too, of files."""
    table = numbers(tmp_path, protocol=_FEED, metadata=_FEED_ON).commit(add("b"), add("a"))
    table.commit(cdc("_change_data/x"), cdc("_change_data/y"), remove("b", **_SIZED), add("d"))
    table.commit(remove("a", **_SIZED, dataChange=False), add("a2", dataChange=False))
    table.commit({"metaData": {**table.metadata, "description": "new"}}, add("c"))
    return table.commit(add("e"), add("f"))


class Stream:
    """Asks for changes by a query from a starting version on."""

    told = _STREAMED

    @staticmethod
    def fields(start, end=None):
        return {"starting_version": start, "ending_version": end}

    @staticmethod
    def ask(world, table, start=0, end=None, **more):
        return world.ask(table, **Stream.fields(start, end), **more)

    @staticmethod
    async def pages(world, table, *others, start=0, end=None, **more):
        return await world.query_pages(table, *others, **Stream.fields(start, end), **more)

    @staticmethod
    async def page(world, table, start=0, end=None, **more):
        return await world.query(table, **Stream.fields(start, end), **more)


class Feed:
    """Asks for the change data feed."""

    told = _FED

    @staticmethod
    def fields(start, end=None):
        return {"start": at_version(start), "end": None if end is None else at_version(end)}

    @staticmethod
    def ask(world, table, start=0, end=None, **more):
        return world.ask_changes(table, **Feed.fields(start, end), **more)

    @staticmethod
    async def pages(world, table, *others, start=0, end=None, **more):
        return await world.changes_pages(table, *others, **Feed.fields(start, end), **more)

    @staticmethod
    async def page(world, table, start=0, end=None, **more):
        return await world.changes(table, **Feed.fields(start, end), **more)


both = pytest.mark.parametrize("kind", [Stream, Feed])


def told_of(answers):
    return [told for answer in answers for told in answer.told]


@both
async def test_the_changes_of_all_versions_are_told_from_the_starting_one_on(world, table, kind):
    answer = await kind.page(world, table)

    assert answer.told == kind.told
    assert answer.head.version == 0
    assert answer.head.response_format == pb.RESPONSE_FORMAT_PARQUET
    assert answer.end == pb.AnswerEnd()


@both
@pytest.mark.parametrize(("start", "end"), [(0, 0), (1, 3), (2, 2), (4, None), (3, 99)])
async def test_a_range_includes_both_ends_and_may_end_in_the_future(world, table, kind, start, end):
    answer = await kind.page(world, table, start=start, end=end)

    last = 4 if end is None else end
    assert answer.told == [change for change in kind.told if start <= change[2] <= last]
    assert answer.head.version == start


@pytest.mark.parametrize(
    ("start", "end", "versions"), [(iso(-5), "", (0, 4)), (iso(0.5), iso(3.5), (1, 3)), (iso(4), "", (4, 4))]
)
async def test_a_feed_may_be_asked_for_by_times(world, table, start, end, versions):
    answer = await world.changes(table, start=at_time(start), end=at_time(end) if end else None)

    first, last = versions
    assert answer.head.version == first
    assert answer.told == [change for change in _FED if first <= change[2] <= last]


async def test_later_metadata_is_told_to_followers_always_and_in_a_feed_to_those_who_ask(world, table):
    followed = await Stream.page(world, table)
    silent = await Feed.page(world, table)
    asked = await Feed.page(world, table, include_historical_metadata=True)

    assert [line["metaData"]["version"] for line in followed.lines if "metaData" in line] == [3]
    assert [line["metaData"]["version"] for line in asked.lines if "metaData" in line] == [3]
    assert not any("metaData" in line for line in silent.lines)
    assert followed.metadata["version"] == asked.metadata["version"] == 0
    # Who is not told of later ones gets the one that does for all.
    assert silent.metadata["description"] == "new"


@both
async def test_later_protocols_are_told_in_delta_to_those_who_ask(world, table, kind):
    table.upgrade(minReaderVersion=1, minWriterVersion=5)
    flags = {} if kind is Stream else {"include_historical_metadata": True}

    silent = await kind.page(world, table, capabilities=DELTA, **flags)
    asked = await kind.page(world, table, capabilities=DELTA, include_historical_protocol=True, **flags)

    assert not any("protocol" in line for line in silent.lines)
    assert [line["protocol"]["version"] for line in asked.lines if "protocol" in line] == [5]
    assert ("version" in silent.protocol, asked.protocol["version"]) == (False, 0)


@both
@pytest.mark.parametrize("capabilities", [PARQUET, DELTA])
async def test_pages_have_each_change_once_in_one_order_whichever_process_is_asked(
    world, table, kind, capabilities
):
    whole = await kind.page(world, table, capabilities=capabilities)
    # What a checkpoint says is not how a version came about.
    table.checkpoint()

    wrong = {}
    for max_files in (1, 2, 3, 6, 7, 8):
        answers = await kind.pages(
            world, table, World(world.grants), capabilities=capabilities, max_files=max_files
        )
        count = -(-len(kind.told) // max_files)
        sizes = [len(answer.actions) for answer in answers]
        if (
            [line for answer in answers for line in answer.lines] != whole.lines
            or sizes[:-1] != [max_files] * (count - 1)
            or len(answers) != count
            or {answer.head.SerializeToString() for answer in answers} != {whole.head.SerializeToString()}
        ):
            wrong[max_files] = sizes, [answer.paths for answer in answers]
    assert wrong == {}


@both
async def test_what_is_committed_between_two_pages_does_not_change_the_answer(world, table, kind):
    first = await kind.page(world, table, max_files=3)
    table.commit({"metaData": {**table.metadata, "description": "newer"}}, add("late"))

    for other in (world, World(world.grants)):
        rest = await kind.pages(other, table, max_files=3, page_token=first.end.next_page_token)
        assert told_of([first, *rest]) == kind.told
        assert {answer.head.lines for answer in rest} == {first.head.lines}
    assert ("add", "late", 5) in (await kind.page(world, table)).told


async def test_a_time_means_on_later_pages_what_it_meant_on_the_first(world, table):
    asked = {"start": at_time(iso(0.5)), "end": at_time(iso(9)), "max_files": 2}
    first = await world.changes(table, **asked)
    table.commit(add("late"))

    rest = await world.changes_pages(table, page_token=first.end.next_page_token, **asked)

    assert told_of([first, *rest]) == [change for change in _FED if change[2] >= 1]


@both
async def test_a_page_is_never_larger_than_the_limit(table, kind):
    world = World(files_per_page=2)

    first = await kind.page(world, table, max_files=1000)
    second = await kind.page(world, table, page_token=first.end.next_page_token)

    assert [len(first.told), len(second.told)] == [2, 2]
    assert (await kind.page(world, table)).told == kind.told


@both
@pytest.mark.parametrize("max_files", [0, -1])
async def test_a_page_of_nothing_is_refused(world, table, kind, max_files):
    with pytest.raises(InvalidArgument, match="maxFiles"):
        await kind.page(world, table, max_files=max_files)
    assert world.reader.listed == []


@both
@pytest.mark.parametrize(
    "changed",
    [
        {"start": 1},
        {"end": 4},
        {"grant": {"principal": "another"}},
        {"grant": {"table_id": "00000000-0000-0000-0000-000000000002"}},
        {"capabilities": DELTA},
        {"file_id_hash": pb.FILE_ID_HASH_DELTA},
        {"include_historical_protocol": True},
    ],
)
async def test_a_page_token_is_refused_where_anything_but_the_page_is_another(world, table, kind, changed):
    first = await kind.page(world, table, max_files=1)
    world.reader.listed.clear()

    with pytest.raises(InvalidArgument, match=_BAD_PAGE):
        await kind.page(world, table, **{"page_token": first.end.next_page_token, **changed})
    assert world.reader.listed == []


async def test_tokens_of_other_answers_are_refused(world, table):
    tokens = {
        Stream: (await Stream.page(world, table, max_files=1)).end.next_page_token,
        Feed: (await Feed.page(world, table, max_files=1)).end.next_page_token,
        None: (await world.query(table, max_files=1)).end.next_page_token,
    }

    for kind in (Stream, Feed):
        for token in (token for owner, token in tokens.items() if owner is not kind):
            with pytest.raises(InvalidArgument, match=_BAD_PAGE):
                await kind.page(world, table, page_token=token)


@both
async def test_a_page_token_expires(world, table, kind):
    token = (await kind.page(world, table, max_files=1)).end.next_page_token

    world.grants.now += PAGE_LIFE - _MOMENT
    assert (await kind.page(world, table, page_token=token)).told == kind.told[1:]
    world.grants.now += _MOMENT
    with pytest.raises(InvalidArgument, match=_BAD_PAGE):
        await kind.page(world, table, page_token=token)


@both
async def test_a_page_whose_versions_were_cleaned_up_is_refused_clearly(world, table, kind):
    first = await kind.page(world, table, max_files=1)
    table.checkpoint().clean_up(before=2)

    with pytest.raises(InvalidArgument, match="no longer holds the changes of version 0"):
        await kind.page(World(world.grants), table, page_token=first.end.next_page_token)


async def test_history_that_is_not_shared_has_no_changes(world, table):
    grant = {"history_shared": False}

    with pytest.raises(Unsupported, match="Reading table by version or timestamp is not supported"):
        await Stream.page(world, table, grant=grant)
    with pytest.raises(InvalidArgument, match=r"cdf is not enabled on table retail\.sales\.orders"):
        await Feed.page(world, table, grant=grant)
    assert world.reader.listed == []


@both
async def test_versions_before_the_first_that_is_shared_have_no_changes(world, table, kind):
    grant = {"start_version": 2}

    with pytest.raises(InvalidArgument, match="You can only query table data since version 2"):
        await kind.page(world, table, start=1, grant=grant)
    assert (await kind.page(world, table, start=2, grant=grant)).head.version == 2


@both
async def test_a_page_of_versions_that_are_no_longer_shared_is_refused(world, table, kind):
    first = await kind.page(world, table, max_files=1)

    with pytest.raises(InvalidArgument, match="You can only query table data since version 2"):
        await kind.page(
            world, table, page_token=first.end.next_page_token, max_files=1, grant={"start_version": 2}
        )


@both
@pytest.mark.parametrize(
    ("start", "end", "reason"), [(5, None, "is after the latest"), (3, 2, "before its start")]
)
async def test_a_range_that_cannot_be_is_refused_before_the_head(world, table, kind, start, end, reason):
    with pytest.raises(InvalidArgument, match=reason):
        await anext(kind.ask(world, table, start=start, end=end))


async def test_changes_from_nowhere_are_refused(world, table):
    with pytest.raises(InvalidArgument, match="startingVersion or a startingTimestamp"):
        await anext(world.ask_changes(table))


async def test_a_feed_of_versions_that_recorded_none_is_refused_and_the_files_are_told(world, tmp_path):
    table = numbers(tmp_path).commit(add("a")).commit(add("b"))

    with pytest.raises(InvalidArgument, match="cdf is not enabled on table"):
        await anext(Feed.ask(world, table))
    assert (await Stream.page(world, table)).told == [("add", "a", 0), ("add", "b", 1)]


@both
@pytest.mark.parametrize("paging", [{}, {"max_files": 1}])
@pytest.mark.parametrize(
    "action", [add("s3://elsewhere/secret"), add("../secret"), remove("/secret", **_SIZED)]
)
async def test_a_file_that_cannot_be_served_stops_the_answer_before_its_head(
    world, table, kind, paging, action
):
    table.commit(*(add(f"f{number}") for number in range(2 * MAX_FILES))).commit(action)

    with pytest.raises(Unsupported) as caught:
        await anext(kind.ask(world, table, **paging))
    assert "secret" not in caught.value.message
    assert (await kind.page(world, table, end=5)).head.version == 0


@both
@pytest.mark.parametrize("damage", [b"{", b"\x00\x00"])
async def test_a_damaged_commit_stops_the_answer_before_its_head_and_names_no_path(
    world, table, kind, damage
):
    await world.query(table)
    (table.log / commit_name(4)).write_bytes(damage)

    with pytest.raises(GatewayError) as caught:
        await anext(kind.ask(world, table))
    assert str(table.directory) not in caught.value.message


async def test_changes_of_a_table_with_vectors_come_in_delta(world, tmp_path):
    table = numbers(tmp_path, **with_features("deletionVectors", "changeDataFeed"))
    table.append(rows([1, 2, 3])).delete_by_vector(pl.col("number") == 2)

    for kind in (Stream, Feed):
        answer = await kind.page(world, table, capabilities=BOTH)
        assert answer.head.response_format == pb.RESPONSE_FORMAT_DELTA
        assert [name for name, _ in answer.actions] == ["add", "add", "remove"]
        assert [fields.get("deletionVector", {}).get("storageType") for _, fields in answer.actions] == [
            None,
            "p",
            None,
        ]
        with pytest.raises(Unsupported, match="deletionVectors"):
            await kind.page(world, table)


async def test_the_feed_of_a_built_table_is_its_files_of_changes(world, tmp_path):
    table = numbers(tmp_path, **with_features("changeDataFeed")).append(rows([1, 2, 3]))
    table.update(pl.col("number") == 1, number=pl.col("number") + 10).delete(pl.col("number") == 2)

    for capabilities in (PARQUET, DELTA):
        answer = await Feed.page(world, table, capabilities=capabilities)
        names = [name for name, _ in answer.actions]
        assert names == ["add", *["cdf" if capabilities is PARQUET else "cdc"] * 2]
        assert all((table.directory / path).is_file() for path in answer.paths)


@both
async def test_pages_are_rendered_as_they_are_asked_for_and_not_after_the_reader_has_gone(world, table, kind):
    for version in range(4):
        table.commit(*(add(f"v{version}-{number}") for number in range(MAX_FILES)))
    assert len((await kind.page(world, table)).pages) > 4
    work = count_work()

    async with aclosing(kind.ask(world, table)) as parts:
        assert (await anext(parts)).HasField("head")
        before = work.jobs
        await asyncio.sleep(0)
        assert work.jobs == before
        assert (await anext(parts)).HasField("page")
        after, read = work.jobs, len(world.reader.read)
        assert after > before

    for _ in range(10):
        await asyncio.sleep(0)
    assert (work.jobs, len(world.reader.read)) == (after, read)
    with pytest.raises(StopAsyncIteration):
        await anext(parts)
