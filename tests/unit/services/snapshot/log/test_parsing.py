from __future__ import annotations

import asyncio
import threading

import pytest

from gateway.domain.location import parse_location
from gateway.services.snapshot.log.parsing import Parsing
from gateway.services.snapshot.log.table_log import TableLog
from tests.fakes.log_reader import FakeLogReader

A, B, C = (parse_location(f"/tables/{name}") for name in "abc")


class Slow:
    """Parses until it is told to end."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.thread = ""

    def __call__(self) -> str:
        self.thread = threading.current_thread().name
        self.begun.set()
        assert self.may_end.wait(60)
        return "parsed"


async def begun(slow: Slow) -> None:
    assert await asyncio.to_thread(slow.begun.wait, 30)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def slow():
    slow = Slow()
    yield slow
    slow.may_end.set()


async def test_it_returns_and_raises_what_the_function_does():
    parsing = Parsing(1)

    assert await parsing.run(A, lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        await parsing.run(A, lambda: 1 // 0)


async def test_a_table_has_one_thread_at_a_time_and_leaves_the_others_to_others(slow):
    parsing = Parsing(2)
    first = asyncio.create_task(parsing.run(A, slow))
    await begun(slow)
    second = asyncio.create_task(parsing.run(A, lambda: "second"))

    assert await parsing.run(B, lambda: "other") == "other"
    await settle()
    assert not second.done()
    slow.may_end.set()
    assert [await first, await second] == ["parsed", "second"]


async def test_no_more_threads_are_taken_than_there_are(slow):
    parsing = Parsing(1)
    first = asyncio.create_task(parsing.run(A, slow))
    await begun(slow)
    other = Slow()
    other.may_end.set()
    second = asyncio.create_task(parsing.run(B, other))
    await settle()

    assert not other.begun.is_set()
    slow.may_end.set()
    assert [await first, await second] == ["parsed", "parsed"]
    assert other.thread == slow.thread


async def test_who_gives_up_leaves_when_his_thread_has_ended(slow):
    parsing = Parsing(2)
    task = asyncio.create_task(parsing.run(A, slow))
    await begun(slow)
    for _ in range(3):
        task.cancel()
        await settle()
    behind = asyncio.create_task(parsing.run(A, lambda: "behind"))
    await settle()

    assert (task.done(), behind.done()) == (False, False)
    slow.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await behind == "behind"


async def test_a_failure_that_nobody_waits_for_any_more_is_no_failure(slow):
    parsing = Parsing(1)

    def fail() -> None:
        slow()
        raise ValueError("damaged")

    task = asyncio.create_task(parsing.run(A, fail))
    await begun(slow)
    task.cancel()
    await settle()
    slow.may_end.set()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_who_gives_up_before_a_thread_is_free_leaves_at_once(slow):
    parsing = Parsing(1)
    first = asyncio.create_task(parsing.run(A, slow))
    await begun(slow)
    never = Slow()
    waiting = [asyncio.create_task(parsing.run(table, never)) for table in (B, A)]
    await settle()
    for task in waiting:
        task.cancel()
    await settle()

    assert [task.cancelled() for task in waiting] == [True, True]
    slow.may_end.set()
    await first
    assert await parsing.run(B, lambda: "next") == "next"
    assert not never.begun.is_set()


async def test_a_log_is_parsed_by_the_threads_that_it_has(slow):
    slow.may_end.set()
    log = TableLog(location=A, reader=FakeLogReader(), parsing=Parsing(1))
    assert await log.parse(slow) == "parsed"
    assert slow.thread.startswith("log")

    assert await TableLog(location=A, reader=FakeLogReader()).parse(slow) == "parsed"
    assert not slow.thread.startswith("log")
