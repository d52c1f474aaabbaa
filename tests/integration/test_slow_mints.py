"""A token service that is slow for many keys at once, before one replica."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.components import ALL_IN_ONE, VALKEY
from tests.doubles.steerable_sts import SteerableSts
from tests.fleet import Judge, running_fleet
from tests.stores.redis import running_server, valkey_program
from tests.waiting import eventually_async

pytestmark = pytest.mark.component(ALL_IN_ONE, VALKEY)

SLOW = [f"slow-{number}" for number in range(9)]


class SlowForSome(SteerableSts):
    """Answers for slow tables when its gate opens, and for the others at once."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.held: set[str] = set()

    async def handle(self, request: web.Request) -> web.Response:
        policy = str((await request.post())["Policy"])
        if slow := [table for table in SLOW if f"/{table}/" in policy]:
            self.held.update(slow)
            await self.gate.wait()
        return await super().handle(request)


@asynccontextmanager
async def running_slow_sts() -> AsyncIterator[SlowForSome]:
    sts = SlowForSome()
    application = web.Application()
    application.router.add_post("/", sts.handle)
    async with TestServer(application) as server:
        sts.endpoint = f"http://127.0.0.1:{server.port}"
        yield sts
        sts.gate.set()


async def test_nine_slow_keys_do_not_hold_up_a_tenth(tmp_path):
    with running_server(valkey_program(), tmp_path / "valkey") as server:
        async with (
            running_slow_sts() as sts,
            running_fleet(
                tmp_path, sts, server.url, tables=[*SLOW, "quick"], recipients=["ann"], replicas=1
            ) as fleet,
        ):
            slow = [asyncio.create_task(fleet.vend(0, "ann", table)) for table in SLOW]
            await eventually_async(lambda: sts.held == set(SLOW))

            answer = await fleet.vend(0, "ann", "quick")

            # The nine were under way all the time.
            assert not any(task.done() for task in slow)
            sts.gate.set()
            answers = await asyncio.gather(*slow)
            judge = Judge()
            for table, each in zip([*SLOW, "quick"], [*answers, answer], strict=True):
                judge.look(each, "ann", table)
            assert judge.verdict == {}
