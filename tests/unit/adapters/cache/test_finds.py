from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from gateway.adapters.cache.finds import Finds
from tests.unit.adapters.cache.doubles import settle


class Store:
    """Keeps what it was asked for at once."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.answer: Sequence[bytes | None] | None = ()

    async def find(self, names: Sequence[str]) -> Sequence[bytes | None] | None:
        self.asked.append(list(names))
        await self.gate.wait()
        if self.answer != ():
            return self.answer
        return [None if name.startswith("no") else name.upper().encode() for name in names]


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def finds(store):
    return Finds(store.find)


async def test_what_several_ask_for_in_one_turn_is_one_round_trip(finds, store):
    asked = (["a", "b"], ["c"], ["nothing", "a"])
    results = await asyncio.gather(*(finds.find(names) for names in asked))
    assert results == [[b"A", b"B"], [b"C"], [None, b"A"]]
    assert store.asked == [["a", "b", "c", "nothing"]]


async def test_one_alone_is_sent_in_the_next_turn_and_waits_for_nobody(finds, store):
    task = asyncio.create_task(finds.find(["a"]))
    await asyncio.sleep(0)
    assert not store.asked
    await asyncio.sleep(0)
    assert store.asked == [["a"]]
    assert await task == [b"A"]


async def test_who_comes_later_is_of_another_round_trip(finds, store):
    store.gate.clear()
    first = asyncio.create_task(finds.find(["a"]))
    await settle()
    second = asyncio.create_task(finds.find(["a", "b"]))
    await settle()
    assert store.asked == [["a"], ["a", "b"]]
    store.gate.set()
    assert (await first, await second) == ([b"A"], [b"A", b"B"])


async def test_very_many_are_several_round_trips_and_each_gets_its_own(finds, store):
    names = [f"n{number}" for number in range(200)]
    results = await asyncio.gather(*(finds.find([name]) for name in names))
    assert results == [[name.upper().encode()] for name in names]
    assert [len(asked) for asked in store.asked] == [16] * 12 + [8]


async def test_nothing_asked_for_is_nothing_found(finds):
    assert await finds.find([]) == []


@pytest.mark.parametrize("answer", [None, [b"A"], [b"A", b"B", b"C"]], ids=["none", "too few", "too many"])
async def test_an_answer_that_does_not_tell_what_is_whose_is_none(finds, store, answer):
    store.answer = answer
    assert await asyncio.gather(*(finds.find([name]) for name in "ab")) == [None, None]


async def test_who_gives_up_leaves_it_to_the_others(finds, store):
    store.gate.clear()
    tasks = [asyncio.create_task(finds.find(["a"])) for _ in range(3)]
    await settle()
    tasks[0].cancel()
    await settle()
    store.gate.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1:] == [[b"A"], [b"A"]]


async def test_what_is_under_way_ends_when_it_is_closed(finds, store):
    store.gate.clear()
    task = asyncio.create_task(finds.find(["a"]))
    await settle()
    await finds.close()
    with pytest.raises(asyncio.CancelledError):
        await task
