from __future__ import annotations

import asyncio

import pytest

from gateway.services.snapshot.log.gathering import gather


async def test_nothing_is_under_way_any_more_after_a_failure():
    ended = []

    async def slow_to_stop() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            ended.append(True)

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        await gather([slow_to_stop, fail], 2)

    assert ended == [True]


async def test_what_is_read_is_in_order_and_so_many_at_a_time():
    running, most = 0, 0

    def read(number: int):
        async def work() -> int:
            nonlocal running, most
            running += 1
            most = max(most, running)
            for _ in range(5 - number % 5):
                await asyncio.sleep(0)
            running -= 1
            return number

        return work

    assert await gather((read(number) for number in range(20)), 3) == list(range(20))
    assert most == 3


async def test_who_gives_up_leaves_nothing_under_way():
    ended = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    task = asyncio.create_task(gather([wait] * 10, 2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True, True]
