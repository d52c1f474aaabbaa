"""A whole fleet is started at once, in an order that suits nobody, with recipients waiting."""

from __future__ import annotations

import pytest

from tests.components import ENVOY, SPLIT, VALKEY
from tests.integration.fleet.replicas import ALL

pytestmark = pytest.mark.component(SPLIT, ENVOY, VALKEY)


async def test_fleet_that_starts_under_waiting_load_becomes_ready_by_itself(planned, recorded):
    await planned.replicas.stop(planned.replicas.every())
    planned.redis.kill()
    async with recorded("cold start", planned.loaded(rate=5)) as load:
        # Edges before what they call, and Redis after those that use it.
        for replica in planned.replicas.every(ALL):
            replica.start()
        planned.redis.start()
        await planned.replicas.ready(planned.replicas.every())
        await load.answered(20)
    assert load.tally.faults == []
    assert load.tally.count("answered") == load.tally.count("sent")
