"""A process is killed under load: what it had in hand is lost and asked for again, and nothing else is."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.components import ENVOY, SPLIT, VALKEY
from tests.integration.fleet.metrics import until_at_work
from tests.integration.fleet.replicas import ALL

# What clients see of a stream that its process took with it.
LOST_IN_THE_MIDDLE = {"cut off", "503 at its end", "connection lost"}

pytestmark = pytest.mark.component(SPLIT, ENVOY, VALKEY)


@pytest.mark.parametrize("service", ALL)
async def test_killed_process_costs_only_what_it_had_in_hand(fleet, tell, service):
    victim = fleet.of(service)[0]
    async with fleet.loaded() as load:
        await load.answered(40)
        # Each of them may be in the hands of the one that dies.
        await load.read("slow query", 6)
        under_way = load.tally.under_way.total()
        await asyncio.to_thread(victim.kill)
        gone_at = time.monotonic()
        await load.answered(60)
        await fleet.replicas.start([victim])
        await until_at_work(victim)
    tally = load.tally
    tell(f"kill -9: {service}", tally, f"{under_way} requests were under way")
    assert tally.faults == []
    assert tally.count("answered") == tally.count("sent")
    assert tally.begun_after(gone_at) == []
    assert set(tally.reasons()) <= LOST_IN_THE_MIDDLE
