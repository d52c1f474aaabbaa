"""A process is killed under load: what it had in hand is lost and asked for again, and nothing else is."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.components import ENVOY, SPLIT, VALKEY
from tests.integration.fleet.hands import kill_at_work
from tests.integration.fleet.metrics import until_at_work
from tests.integration.fleet.replicas import ALL, Replica
from tests.integration.fleet.running import Fleet

# What clients see of a stream that its process took with it; the second where its answer had not begun yet.
LOST_IN_THE_MIDDLE = {"cut off", "503", "503 at its end", "connection lost"}

pytestmark = pytest.mark.component(SPLIT, ENVOY, VALKEY)


@pytest.mark.parametrize("service", ALL)
async def test_killed_process_costs_only_what_it_had_in_hand(fleet, recorded, service):
    victim = fleet.of(service)[0]
    async with recorded(f"kill -9: {service}", fleet.loaded()) as load:
        await load.answered(40)
        # Each of them may be in the hands of the one that dies.
        await load.read("slow query", 6)
        held = await asyncio.to_thread(kill_at_work, victim, fleet, load)
        gone_at = time.monotonic()
        load.note(f"when it was looked at it had {held.requests} requests in hand, the others {held.others}")
        await load.answered(60)
        starting, joining = await come_back(fleet, victim)
    tally = load.tally
    noticed, longest = tally.noticed_until(gone_at), load.longest_wait(gone_at)
    load.note(f"the last attempt to fail ended {noticed:.1f} s after the kill")
    load.note(f"the longest wait for an answer from then on was {longest:.1f} s")
    load.note(f"started again it was ready after {starting:.1f} s, and in use {joining:.1f} s later")
    assert tally.faults == []
    assert tally.count("answered") == tally.count("sent")
    assert held.requests > 0
    assert [setback for setback in tally.setbacks if not held.had(setback)] == []
    assert tally.begun_after(gone_at) == []
    assert set(tally.reasons()) <= LOST_IN_THE_MIDDLE


async def come_back(fleet: Fleet, victim: Replica) -> tuple[float, float]:
    """Start it again; return how long it took to be ready, and from then on to be in use, in seconds."""
    started_at = time.monotonic()
    await fleet.replicas.start([victim])
    ready_at = time.monotonic()
    await fleet.found([victim])
    await until_at_work(victim)
    return ready_at - started_at, time.monotonic() - ready_at
