from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from gateway.domain.location import Location
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.columns import Columns
from gateway.services.snapshot.state.snapshot import Snapshot
from gateway.services.snapshot.state.store import SnapshotStore
from gateway.v1 import snapshot_pb2 as pb
from tests.fakes.grants import GRANT
from tests.unit.services.snapshot.answer.pages import many, snapshot_of
from tests.unit.services.snapshot.world import World

_SCHEMA = '{"type":"struct","fields":[{"name":"c","type":"long","nullable":true,"metadata":{}}]}'
_HINTED = pb.QueryRequest(predicate_hints=["c > 5"], limit_hint=1)
_PAGED = pb.QueryRequest(max_files=2)
_PLAIN = pb.QueryRequest()


class SlowColumns(Columns):
    """Makes nothing before it is told to, and counts those who have it made, or wait for it, in a thread."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = threading.Event()
        self.begun = 0

    def get(self, *args: Any) -> Any:
        self._hold()
        return super().get(*args)

    def get_order(self, *args: Any) -> Any:
        self._hold()
        return super().get_order(*args)

    def _hold(self) -> None:
        self.begun += 1
        if not self.may_go_on.wait(60):
            # Nobody comes to tell: the others need not wait as well.
            self.may_go_on.set()
            raise AssertionError("all threads are taken")


class Tables:
    """Stands in for a store that has a slow table and others."""

    def __init__(self, slow: Location) -> None:
        self.columns = SlowColumns()
        self._slow = slow
        self._plain = replace(snapshot_of(schema=_SCHEMA), files=many(5))
        self.measured: list[int] = []

    async def latest(self, log: TableLog, freshness: timedelta) -> Snapshot:
        if log.location != self._slow:
            return self._plain
        return replace(self._plain, files=replace(self._plain.files, columns=self.columns))

    def measure(self, log: TableLog, snapshot: Snapshot) -> None:
        self.measured.append(snapshot.files.columns.order_memory)


@pytest.fixture
def tables() -> Iterator[Tables]:
    tables = Tables(GRANT.location)
    yield tables
    tables.columns.may_go_on.set()


class Asking:
    """Queries of a slow table and of another one, in a process that has one thread for them all."""

    def __init__(self, tables: Tables) -> None:
        world = World()
        self._queries = world.file_queries(cast(SnapshotStore, tables))
        self._logs = [
            TableLog(location=location, reader=world.reader)
            for location in (GRANT.location, replace(GRANT.location, path="another"))
        ]
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))

    async def slow(self, request: pb.QueryRequest) -> int:
        return await self._ask(self._logs[0], request)

    async def other(self, request: pb.QueryRequest) -> int:
        return await self._ask(self._logs[1], request)

    async def _ask(self, log: TableLog, request: pb.QueryRequest) -> int:
        parts = [part async for part in self._queries.answer(log, GRANT, request)]
        return sum(part.page.files for part in parts if part.HasField("page"))


async def has_begun(tables: Tables) -> None:
    while not tables.columns.begun:
        await asyncio.to_thread(int)
    # Whoever else would begin has had his time for it.
    for _ in range(20):
        await asyncio.to_thread(int)


@pytest.mark.parametrize("request_of_all", [_HINTED, _PAGED])
async def test_many_that_wait_for_the_same_of_a_table_hold_up_no_other_table(tables, request_of_all):
    asking = Asking(tables)
    waiting = [asyncio.create_task(asking.slow(request_of_all)) for _ in range(8)]
    await has_begun(tables)

    # All of the process's threads are free for these.
    assert await asking.other(_PLAIN) == 5
    assert await asking.other(_HINTED) == 5
    assert await asking.other(_PAGED) == 2
    assert await asking.slow(_PLAIN) == 5
    assert tables.columns.begun == 1
    assert not any(task.done() for task in waiting)

    tables.columns.may_go_on.set()
    assert len(set(await asyncio.gather(*waiting))) == 1


async def test_a_page_is_not_kept_waiting_by_statistics_nor_a_hint_by_an_order(tables):
    asking = Asking(tables)
    hinted = asyncio.create_task(asking.slow(_HINTED))
    await has_begun(tables)
    paged = asyncio.create_task(asking.slow(_PAGED))
    while tables.columns.begun < 2:
        await asyncio.to_thread(int)

    tables.columns.may_go_on.set()
    assert (await hinted, await paged) == (5, 2)


async def test_who_gives_up_waiting_for_a_column_takes_no_thread_and_leaves_the_rest_their_turn(tables):
    asking = Asking(tables)
    waiting = [asyncio.create_task(asking.slow(_HINTED)) for _ in range(8)]
    await has_begun(tables)
    for task in waiting[1:5]:
        task.cancel()
    assert await asking.other(_PLAIN) == 5
    assert tables.columns.begun == 1

    tables.columns.may_go_on.set()
    assert await asyncio.gather(waiting[0], *waiting[5:]) == [5] * 4


async def test_what_is_made_is_asked_for_without_a_wait_afterwards(tables):
    asking = Asking(tables)
    tables.columns.may_go_on.set()
    await asking.slow(_HINTED)
    await asking.slow(_PAGED)
    made = tables.columns.begun

    await asking.slow(_HINTED)
    await asking.slow(_PAGED)
    assert tables.columns.begun == made


async def test_an_order_counts_as_soon_as_it_is_made(tables):
    asking = Asking(tables)
    tables.columns.may_go_on.set()
    await asking.slow(_PAGED)

    assert tables.measured == [5 * 4]
