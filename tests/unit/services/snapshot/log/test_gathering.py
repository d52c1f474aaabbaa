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
