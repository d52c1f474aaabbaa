from __future__ import annotations

import asyncio
import json
import re
import shutil
import threading
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from itertools import accumulate, product
from typing import Any, cast

import polars as pl
import pytest

from gateway.domain.log import checkpoint_name
from gateway.errors import GatewayError, InvalidArgument, Unsupported
from gateway.services.snapshot.answer.batch import MAX_FILES
from gateway.services.snapshot.file_query import HintSettings
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.files import Files
from gateway.services.snapshot.state.snapshot import Snapshot
from gateway.services.snapshot.state.store import SnapshotStore
from gateway.v1 import snapshot_pb2 as pb
from tests.builders import Field, TableBuilder, add, inline_vector, location_of, numbers, rows, with_features
from tests.fakes.grants import GRANT
from tests.unit.services.snapshot.answer.pages import many, snapshot_of
from tests.unit.services.snapshot.world import (
    DELTA,
    PAGE_LIFE,
    PARQUET,
    REFRESH_LIFE,
    World,
    at_time,
    at_version,
    count_work,
    iso,
)

_MOMENT = timedelta(milliseconds=1)
# In no order, so that neither the log's nor any other comes out by chance.
_NAMES = ("m", "c", "x=1/b", "a", "Z", "é", "x=1/a", "b b", "k", "0")
_BAD_PAGE = "the page token is not valid for this request, or has expired"
_BAD_REFRESH = "the refresh token is not valid for this table, or has expired"


@pytest.fixture
def world():
    return World()


@pytest.fixture
def table(tmp_path):
    """A table of ten files with two rows each, of which one came and went."""
    table = numbers(tmp_path).commit(*(_file(name) for name in _NAMES[:4]), _file("gone"))
    table.commit(*(_file(name) for name in _NAMES[4:7])).delete_files("gone")
    return table.commit(*(_file(name) for name in _NAMES[7:]))


@pytest.fixture
def days(tmp_path):
    """A table of four days, with two files of two numbers for each: 0 to 3, 10 to 13 and so on."""
    fields = [Field("number", "long"), Field("day", "string")]
    table = TableBuilder(tmp_path / "days", fields, partition_by=["day"])
    numbered = [{"number": 10 * day + n, "day": f"d{day}"} for day in range(4) for n in range(4)]
    return table.append(numbered, files=2)


def _file(name, **fields):
    return add(name.replace(" ", "%20"), **{"stats": '{"numRecords":2}', **fields})


def paths_of(answers):
    return [path for answer in answers for path in answer.paths]


def in_order(names):
    """Return names in the order of pages: by the bytes of their spelling in the log."""
    return sorted(names, key=lambda name: name.replace(" ", "%20").encode())


def equal(column, value_type, value):
    children = [
        {"op": "column", "name": column, "valueType": value_type},
        {"op": "literal", "value": value, "valueType": value_type},
    ]
    return json.dumps({"op": "equal", "children": children})


@pytest.mark.parametrize("capabilities", [PARQUET, DELTA])
async def test_pages_have_each_file_once_in_one_order_however_the_log_was_read(world, table, capabilities):
    sizes = (1, 3, 9, 10, 11)
    asked = {size: {"max_files": size, "capabilities": capabilities} for size in sizes}
    read = {(size, "by commits"): await world.query_pages(table, **asked[size]) for size in sizes}
    table.checkpoint()
    for size in sizes:
        through_checkpoint = World(world.grants)
        read[size, "mixed"] = await world.query_pages(table, through_checkpoint, **asked[size])
        read[size, "alone"] = await World(world.grants).query_pages(table, **asked[size])
        assert size >= len(_NAMES) or checkpoint_name(3) in through_checkpoint.reader.read, size

    assert checkpoint_name(3) not in world.reader.read
    assert {
        case: paths for case, pages in read.items() if (paths := paths_of(pages)) != in_order(_NAMES)
    } == {}
    found = {case: [len(page.paths) for page in pages[:-1]] for case, pages in read.items()}
    assert found == {(size, how): [size] * (len(pages) - 1) for (size, how), pages in read.items()}


@pytest.mark.parametrize("capabilities", [PARQUET, DELTA])
async def test_the_heads_of_all_pages_are_the_same_bytes(world, table, capabilities):
    asked = {"max_files": 3, "capabilities": capabilities}
    first = await world.query(table, **asked)
    # The others read it at another time, another way, and after it was described anew.
    table.checkpoint().describe(description="new").commit(add("later"))
    others = await World(world.grants).query_pages(
        table, world, page_token=first.end.next_page_token, **asked
    )

    assert len(others) == 3
    assert {answer.head.SerializeToString() for answer in others} == {first.head.SerializeToString()}
    assert first.head.version == 3


@pytest.mark.parametrize(("max_files", "pages"), [(4, 3), (5, 2), (9, 2), (10, 1), (11, 1), (99, 1)])
async def test_a_page_leads_to_another_only_where_files_follow(world, table, max_files, pages):
    answers = await world.query_pages(table, max_files=max_files)

    assert len(answers) == pages
    assert all(answer.paths for answer in answers)


async def test_an_answer_that_is_not_paged_leads_nowhere(world, table):
    assert (await world.query(table)).end == pb.AnswerEnd()


async def test_an_empty_table_has_one_empty_page(world, tmp_path):
    [answer] = await world.query_pages(numbers(tmp_path).create(), max_files=1)

    assert (answer.pages, answer.end) == ([], pb.AnswerEnd())


async def test_a_page_of_more_files_than_a_message_holds_comes_in_messages(tmp_path):
    world = World(files_per_page=10 * MAX_FILES)
    table = numbers(tmp_path).commit(*(add(f"f{number:05}") for number in range(3 * MAX_FILES)))

    first, second = await world.query_pages(table, max_files=2 * MAX_FILES + 1)

    assert [page.files for page in first.pages] == [MAX_FILES, MAX_FILES, 1]
    assert first.paths + second.paths == list(table.live)


async def test_a_page_is_never_larger_than_the_limit(table):
    world = World(files_per_page=3)

    first = await world.query(table, max_files=2**31 - 1)
    second = await world.query(table, page_token=first.end.next_page_token)

    assert [len(first.paths), len(second.paths)] == [3, 3]
    assert len((await world.query(table)).paths) == 10


async def test_the_size_of_a_page_may_change_from_page_to_page(world, table):
    first = await world.query(table, max_files=1)
    second = await world.query(table, max_files=5, page_token=first.end.next_page_token)
    third = await world.query(table, page_token=second.end.next_page_token)

    assert paths_of([first, second, third]) == in_order(_NAMES)


@pytest.mark.parametrize("max_files", [0, -1])
async def test_a_page_of_nothing_is_refused(world, table, max_files):
    with pytest.raises(InvalidArgument, match="maxFiles"):
        await world.query(table, max_files=max_files)
    assert world.reader.listed == []


async def test_a_limit_is_one_for_all_pages(world, table):
    wrong = {}
    for limit, max_files in product([0, 1, 2, 3, 5, 19, 20, 21, 10**18], [1, 3, 10, 11]):
        answers = await world.query_pages(table, max_files=max_files, limit_hint=limit)
        # Each file has two rows: half of the limit, rounded up.
        expected = in_order(_NAMES)[: min(-(-limit // 2), len(_NAMES))]
        if paths_of(answers) != expected or not all(answer.paths for answer in answers[1:]):
            wrong[limit, max_files] = [answer.paths for answer in answers]

    assert wrong == {}


async def test_a_limit_counts_what_the_statistics_of_all_pages_count(world, tmp_path):
    counts = [5, None, 1, 0, 7, 2, 2, 9]
    table = numbers(tmp_path).commit(
        *(
            add(f"f{number}", **({} if count is None else {"stats": f'{{"numRecords":{count}}}'}))
            for number, count in enumerate(counts)
        )
    )
    reached = list(accumulate(count or 0 for count in counts))
    # One row more or less than the files so far have makes the difference.
    limits = sorted({1, *reached, *(rows_so_far + 1 for rows_so_far in reached)})

    wrong = {}
    for limit, max_files in product(limits, (1, 3)):
        needed = next((n for n, rows_so_far in enumerate(reached) if rows_so_far >= limit), len(counts)) + 1
        answers = await world.query_pages(table, max_files=max_files, limit_hint=limit)
        if paths_of(answers) != list(table.live)[:needed]:
            wrong[limit, max_files] = paths_of(answers)
    assert wrong == {}


@pytest.mark.parametrize("history_shared", [True, False])
async def test_what_is_committed_between_two_pages_does_not_change_the_answer(world, table, history_shared):
    asked = {"max_files": 4, "grant": {"history_shared": history_shared}}
    first = await world.query(table, **asked)
    table.delete_files(*table.live).commit(add("a1"), add("z"))
    others = (world, World(world.grants))

    for other in others:
        rest = await other.query_pages(table, page_token=first.end.next_page_token, **asked)
        assert paths_of([first, *rest]) == in_order(_NAMES)
        assert {answer.head.version for answer in rest} == {3}
        # It is not a version of the past that was asked for.
        assert not any("version" in file for answer in rest for file in answer.files)
    assert (await world.query(table)).paths == ["a1", "z"]


@pytest.mark.parametrize("at", [at_version(1), at_time(iso(1.5))])
async def test_pages_of_the_past_say_so_on_each_of_them(world, table, at):
    whole = await world.query(table, at=at)

    answers = await world.query_pages(table, World(world.grants), at=at, max_files=3)

    assert len(answers) == 3
    assert {answer.head.lines for answer in answers} == {whole.head.lines}
    by_id = {file["id"]: file for file in whole.files}
    assert {file["id"]: file for answer in answers for file in answer.files} == by_id
    assert {(file["version"], file["timestamp"]) for file in by_id.values()} == {(1, 1704070800000)}


async def test_a_time_means_on_later_pages_what_it_meant_on_the_first(world, table):
    at = at_time(iso(3))
    first = await world.query(table, at=at, max_files=4)
    # By now that is the time of another version.
    table.touch(3, world.grants.now).commit(add("new"))

    rest = await world.query_pages(table, at=at, max_files=4, page_token=first.end.next_page_token)

    assert {answer.head.version for answer in rest} == {3}
    assert paths_of([first, *rest]) == in_order(_NAMES)


async def test_a_page_of_a_version_that_was_cleaned_up_is_refused_clearly(world, table):
    first = await world.query(table, max_files=4)
    table.commit(add("later")).checkpoint().clean_up(before=4)

    for other in (world, World(world.grants)):
        with pytest.raises(Unsupported, match="without which version 3 cannot be read"):
            await other.query(table, max_files=4, page_token=first.end.next_page_token)


async def test_a_page_of_a_table_that_was_made_anew_and_has_not_come_so_far_is_refused(world, table):
    first = await world.query(table, max_files=4)
    shutil.rmtree(table.directory)
    numbers(table.directory.parent).commit(add("other"))

    words = f"version 3 of table {GRANT.table} is after the latest available version 0"
    with pytest.raises(InvalidArgument, match=re.escape(words)):
        await world.query(table, max_files=4, page_token=first.end.next_page_token)


async def test_a_page_of_a_version_that_is_no_longer_shared_is_refused(world, table):
    first = await world.query(table, max_files=4)
    table.commit(add("later"))

    with pytest.raises(InvalidArgument, match="You can only query table data since version 4"):
        await world.query(
            table, max_files=4, page_token=first.end.next_page_token, grant={"start_version": 4}
        )


@pytest.mark.parametrize(
    "changed",
    [
        {"grant": {"principal": "another"}},
        {"grant": {"table_id": "00000000-0000-0000-0000-000000000002"}},
        {"limit_hint": 20},
        {"limit_hint": None},
        {"predicate_hints": ["number > 1"]},
        {"json_predicate_hints": "{}"},
        {"capabilities": DELTA},
        {"file_id_hash": pb.FILE_ID_HASH_DELTA},
        {"at": at_version(3)},
        {"starting_version": 0},
    ],
)
async def test_a_page_token_is_refused_where_anything_but_the_page_is_another(world, table, changed):
    first = await world.query(table, max_files=4, limit_hint=19)
    world.reader.listed.clear()

    with pytest.raises(InvalidArgument, match=_BAD_PAGE):
        await world.query(
            table, **{"max_files": 4, "limit_hint": 19, "page_token": first.end.next_page_token, **changed}
        )
    assert world.reader.listed == []


async def test_a_page_token_of_a_table_elsewhere_is_refused(world, table, tmp_path):
    first = await world.query(table, max_files=4)
    shutil.copytree(table.directory, tmp_path / "copy")
    copy = TableBuilder(tmp_path / "copy", [])

    with pytest.raises(InvalidArgument, match=_BAD_PAGE):
        await world.query(copy, max_files=4, page_token=first.end.next_page_token)


async def test_a_page_token_expires(world, table):
    first = await world.query(table, max_files=4)
    token = first.end.next_page_token

    world.grants.now += PAGE_LIFE - _MOMENT
    assert len((await world.query(table, max_files=4, page_token=token)).paths) == 4
    world.grants.now += _MOMENT
    with pytest.raises(InvalidArgument, match=_BAD_PAGE):
        await world.query(table, max_files=4, page_token=token)


async def test_tokens_of_other_kinds_are_no_page_tokens(world, table):
    refresh = (await world.query(table, include_refresh_token=True)).end.refresh_token
    stream = (await world.query(table, starting_version=0, max_files=1)).end.next_page_token

    for token in (refresh, stream, "nonsense"):
        with pytest.raises(InvalidArgument, match=_BAD_PAGE):
            await world.query(table, page_token=token)
        with pytest.raises(InvalidArgument, match=_BAD_REFRESH):
            await world.query(table, refresh_token=token + "x")


async def test_a_refresh_token_is_given_to_those_who_ask(world, table):
    assert (await world.query(table, include_refresh_token=True)).end.refresh_token
    assert not (await world.query(table)).end.refresh_token
    assert not (await world.query(table, max_files=1)).end.refresh_token


async def test_a_refresh_does_not_ask_for_another_one_by_itself(world, table):
    token = (await world.query(table, include_refresh_token=True)).end.refresh_token

    assert not (await world.query(table, refresh_token=token)).end.refresh_token
    assert (await world.query(table, refresh_token=token, include_refresh_token=True)).end.refresh_token


@pytest.mark.parametrize("history_shared", [True, False])
async def test_a_refresh_is_of_the_same_version_whatever_was_committed(world, table, history_shared):
    grant = {"history_shared": history_shared}
    before = await world.query(table, include_refresh_token=True, grant=grant)
    table.delete_files(*table.live).describe(description="new").commit(add("new"))
    assert (await world.query(table)).paths == ["new"]

    for other in (world, World(world.grants)):
        after = await other.query(table, refresh_token=before.end.refresh_token, grant=grant)
        assert after.head == before.head
        assert after.files == before.files


async def test_a_chain_of_refreshes_stays_with_its_version(world, table):
    answer = await world.query(table, include_refresh_token=True)
    for number in range(3):
        table.commit(add(f"new{number}"))
        world.grants.now += REFRESH_LIFE - _MOMENT
        answer = await world.query(table, include_refresh_token=True, refresh_token=answer.end.refresh_token)

    assert answer.head.version == 3
    assert sorted(answer.paths) == sorted(_NAMES)


async def test_a_refresh_without_the_predicate_has_the_same_files_among_more(world, days):
    before = await world.query(days, predicate_hints=["day = 'd1'"], limit_hint=1, include_refresh_token=True)
    days.append([{"number": 10, "day": "d1"}])

    after = await world.query(days, refresh_token=before.end.refresh_token)

    assert len(before.files) == 1
    assert len(after.files) == 8
    assert {file["id"] for file in before.files} < {file["id"] for file in after.files}


async def test_a_refreshed_answer_may_be_paged(world, table):
    token = (await world.query(table, include_refresh_token=True)).end.refresh_token
    table.delete_files("m")

    first = await world.query(table, refresh_token=token, max_files=4)
    table.delete_files("c")
    rest = await world.query_pages(table, page_token=first.end.next_page_token, max_files=4)

    assert paths_of([first, *rest]) == in_order(_NAMES)


async def test_a_refresh_token_expires_after_a_day(world, table):
    token = (await world.query(table, include_refresh_token=True)).end.refresh_token

    world.grants.now += timedelta(hours=24) - _MOMENT
    assert (await world.query(table, refresh_token=token)).head.version == 3
    world.grants.now += _MOMENT
    with pytest.raises(InvalidArgument, match=_BAD_REFRESH):
        await world.query(table, refresh_token=token)


@pytest.mark.parametrize(
    "grant", [{"principal": "another"}, {"table_id": "00000000-0000-0000-0000-000000000002"}]
)
async def test_a_refresh_token_of_another_recipient_or_table_is_refused(world, table, grant):
    token = (await world.query(table, include_refresh_token=True)).end.refresh_token
    world.reader.listed.clear()

    with pytest.raises(InvalidArgument, match=_BAD_REFRESH):
        await world.query(table, refresh_token=token, grant=grant)
    assert world.reader.listed == []


async def test_a_refresh_of_a_version_that_was_cleaned_up_is_refused_clearly(world, table):
    token = (await world.query(table, include_refresh_token=True)).end.refresh_token
    table.commit(add("later")).checkpoint().clean_up(before=4)

    with pytest.raises(Unsupported, match="without which version 3 cannot be read"):
        await World(world.grants).query(table, refresh_token=token)


async def test_hints_that_are_used_and_skipped_are_counted_in_the_head_and_the_metrics(world, days):
    answer = await world.query(
        days,
        predicate_hints=["day = 'd1'", "nonsense >", "unheard = 1"],
        json_predicate_hints=equal("number", "long", "12"),
    )

    assert answer.head.hints == pb.HintOutcome(used=2, skipped=2)
    assert sorted(world.metrics.hints) == [("json", 1, 0), ("sql", 1, 2)]
    assert world.metrics.pruned == [(1, 7)]
    [file] = answer.files
    assert json.loads(file["stats"])["minValues"] == {"number": 12}


async def test_what_is_pruned_is_counted_among_the_live_files(world, days):
    # Known already, it keeps the rows of what is deleted.
    await world.query(days)
    gone = {"d0", "d3"}
    days.delete_files(*(path for path, add in days.live.items() if add["partitionValues"]["day"] in gone))

    assert len((await world.query(days, predicate_hints=["day >= 'd2'"])).files) == 2
    assert world.metrics.pruned == [(2, 2)]


async def test_what_hints_have_made_of_the_files_counts_at_once(world, days):
    await world.query(days)
    count, before = world.metrics.memory
    await world.query(days, predicate_hints=["number = 12"])

    assert world.metrics.memory[0] == count
    assert world.metrics.memory[1] > before


async def test_without_hints_nothing_is_counted(world, days):
    answer = await world.query(days)

    assert answer.head.hints == pb.HintOutcome()
    assert (world.metrics.hints, world.metrics.pruned) == ([], [])


async def test_hints_that_mean_nothing_leave_every_file_in(world, days):
    answer = await world.query(days, predicate_hints=["nonsense >"], json_predicate_hints="{")

    assert len(answer.files) == 8
    assert answer.head.hints == pb.HintOutcome(used=0, skipped=2)
    assert sorted(world.metrics.hints) == [("json", 0, 1), ("sql", 0, 1)]
    assert world.metrics.pruned == []


@pytest.mark.parametrize(
    ("settings", "files", "used"),
    [
        (HintSettings(), 1, 2),
        (HintSettings(sql=False), 2, 1),
        (HintSettings(json=False), 2, 1),
        (HintSettings(sql=False, json=False), 8, 0),
    ],
)
async def test_hints_of_a_kind_that_is_switched_off_are_skipped(days, settings, files, used):
    world = World(hints=settings)

    answer = await world.query(
        days,
        predicate_hints=["number BETWEEN 12 AND 21"],
        json_predicate_hints=json.dumps(
            {
                "op": "or",
                "children": [json.loads(equal("number", "long", value)) for value in ("12", "32")],
            }
        ),
    )

    assert len(answer.files) == files
    # Whoever sent them is told that they made no difference.
    assert answer.head.hints == pb.HintOutcome(used=used, skipped=2 - used)
    assert sum(skipped for _, _, skipped in world.metrics.hints) == 2 - used


@pytest.mark.parametrize("paging", [{}, {"max_files": 1}])
async def test_predicates_are_applied_before_the_limit(world, days, paging):
    answers = await world.query_pages(days, predicate_hints=["day = 'd3'"], limit_hint=3, **paging)

    assert [path.split("/")[0] for path in paths_of(answers)] == ["day=d3", "day=d3"]


async def test_pages_have_each_file_that_hints_leave_once(world, days):
    hints = {"predicate_hints": ["number >= 12"]}
    whole = await world.query(days, **hints)

    answers = await world.query_pages(days, World(world.grants), max_files=2, **hints)

    assert len(whole.paths) == 5
    assert paths_of(answers) == sorted(whole.paths)
    assert {answer.head.hints.used for answer in answers} == {1}


_UNSERVABLE = [
    add("s3://elsewhere/secret/f"),
    add("/etc/secret"),
    add("../secret"),
    add("_Delta_Log/secret.json"),
    add("fine", deletionVector={**inline_vector([1]), "storageType": "x"}),
    add("fine", deletionVector={**inline_vector([1]), "storageType": "u", "pathOrInlineDv": "short"}),
    # As long as a name is, and of no number that a UUID has.
    add("fine", deletionVector={**inline_vector([1]), "storageType": "u", "pathOrInlineDv": "#" * 20}),
    add("fine", deletionVector={**inline_vector([1]), "storageType": "p", "pathOrInlineDv": "s3://b/v"}),
]


@pytest.mark.parametrize("action", _UNSERVABLE)
@pytest.mark.parametrize("paging", [{}, {"max_files": 1}])
async def test_a_file_that_cannot_be_served_stops_the_answer_before_its_head(world, tmp_path, action, paging):
    table = numbers(tmp_path, **with_features("deletionVectors"))
    table.commit(*(add(f"a{number}") for number in range(2 * MAX_FILES))).commit(action)

    with pytest.raises(Unsupported) as caught:
        await anext(world.ask(table, capabilities=DELTA, **paging))
    assert "secret" not in caught.value.message


async def test_a_file_that_cannot_be_served_does_no_harm_where_hints_rule_it_out(world, days):
    days.commit(add("/etc/secret", partitionValues={"day": "d9"}))

    assert len((await world.query(days, predicate_hints=["day = 'd1'"])).files) == 2
    with pytest.raises(Unsupported):
        await anext(world.ask(days, predicate_hints=["day >= 'd1'"]))


async def test_what_is_asked_for_wrongly_is_told_before_the_head(world, table):
    asks: list[dict[str, Any]] = [
        {"limit_hint": -1},
        {"max_files": 0},
        {"page_token": "x"},
        {"refresh_token": "x"},
        {"at": at_version(99)},
    ]

    for ask in asks:
        with pytest.raises(GatewayError):
            await anext(world.ask(table, **ask))


class CountedFiles(Files):
    """Remembers how often rows were taken from it, which is a slice at a time."""

    __slots__ = ("taken",)
    taken: list[int]

    def rows(self, offset: int, length: int, kept: pl.Series | None = None) -> pl.DataFrame:
        self.taken.append(offset)
        return super().rows(offset, length, kept)


class KnownTable:
    """Stands in for a store that has one snapshot."""

    def __init__(self, files: int) -> None:
        plain = many(files)
        self.files = CountedFiles(frame=plain.frame, num_files=files, size=files)
        object.__setattr__(self.files, "taken", [])
        self.snapshot = replace(snapshot_of(), files=self.files)

    async def latest(self, log: TableLog, freshness: timedelta) -> Snapshot:
        return self.snapshot


async def test_files_are_rendered_as_they_are_asked_for_and_not_after_the_reader_has_gone():
    world, table = World(), KnownTable(100 * MAX_FILES)
    queries = world.file_queries(cast(SnapshotStore, table))
    log = TableLog(location=GRANT.location, reader=world.reader)
    work = count_work()
    answer: Any = queries.answer(log, GRANT, pb.QueryRequest())

    async with aclosing(answer) as parts:
        assert (await anext(parts)).HasField("head")
        assert table.files.taken == []
        before = work.jobs
        assert [(await anext(parts)).page.files for _ in range(3)] == [MAX_FILES] * 3
        assert work.jobs == before + 3

    for _ in range(10):
        await asyncio.sleep(0)
    assert work.jobs == before + 3
    # Of a hundred pages, the rows of the last were never looked at.
    assert table.files.taken == [0, MAX_FILES]
    with pytest.raises(StopAsyncIteration):
        await anext(parts)


async def test_a_call_that_is_cancelled_while_it_works_does_no_more_of_it(world, tmp_path):
    table = numbers(tmp_path).commit(*(add(f"f{number}") for number in range(4 * MAX_FILES)))
    await world.query(table)
    work = count_work()
    parts = world.ask(table)
    await anext(parts)
    # Both threads are taken: the page is waited for.
    may_go_on = threading.Event()
    busy = [work.submit(may_go_on.wait) for _ in range(2)]
    before = work.jobs

    page = asyncio.ensure_future(anext(parts))
    while work.jobs == before:
        await asyncio.sleep(0)
    page.cancel()
    with pytest.raises(asyncio.CancelledError):
        await page
    may_go_on.set()
    assert all([await asyncio.wrap_future(job) for job in busy])

    with pytest.raises(StopAsyncIteration):
        await anext(parts)
    assert work.jobs == before + 1


async def test_many_queries_at_once_of_one_table_are_each_whole(world, table):
    answers = await asyncio.gather(*(world.query_pages(table, max_files=1 + n % 4) for n in range(12)))

    assert all(paths_of(pages) == in_order(_NAMES) for pages in answers)
    assert len(world.metrics.loads) == 1


async def test_files_with_deletion_vectors_are_paged_as_others_are(world, tmp_path):
    table = numbers(tmp_path, **with_features("deletionVectors")).append(rows(range(10)), files=5)
    table.delete_by_vector(pl.col("number").is_in([0, 4, 9]))

    answers = await world.query_pages(table, World(world.grants), capabilities=DELTA, max_files=2)

    assert paths_of(answers) == sorted(table.live)
    vectors = ["deletionVector" in fields for answer in answers for _, fields in answer.actions]
    assert vectors == ["deletionVector" in table.live[path] for path in sorted(table.live)]
    assert location_of(table).text in str(answers[0].metadata)
