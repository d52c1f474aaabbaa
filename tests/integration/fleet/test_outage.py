"""One of the two ways to be given access is gone altogether, then Redis with it: the other goes on."""

from __future__ import annotations

import asyncio
from statistics import median

import pytest

from tests.components import ENVOY, SPLIT, VALKEY
from tests.integration.fleet.load import DIR_MODE, LISTS, STREAMS, URL_MODE

pytestmark = pytest.mark.component(SPLIT, ENVOY, VALKEY)

# What is lost with a service, and what must not feel it.
CASES = {
    "vending": (DIR_MODE, (*URL_MODE, *LISTS)),
    "presign": (STREAMS, (*DIR_MODE, *LISTS, "metadata", "file")),
}


@pytest.mark.parametrize("service", CASES)
async def test_outage_of_one_access_mode_leaves_the_other_untouched(fleet, recorded, service):
    lost, untouched = CASES[service]
    async with recorded(f"outage: {service}", fleet.loaded(patience=0)) as load:
        await load.answered(20)
        await load.have_urls()
        for replica in fleet.of(service):
            await asyncio.to_thread(replica.kill)
        await load.answered(40, of=untouched)
        await asyncio.to_thread(fleet.redis.kill)
        await load.answered(40, of=untouched)
        fleet.redis.start()
        await fleet.replicas.start(fleet.of(service))
        await load.answered(5, of=lost)
    tally = load.tally
    # Others, whose answers had begun, were told at their end.
    refused = [setback for setback in tally.setbacks if setback.reason == "503"]
    assert refused
    waits = [setback.ended_at - setback.began_at for setback in refused]
    load.note(f"refused after {median(waits):.2f} s, and {max(waits):.2f} s at most")
    load.note(f"what was answered began {load.longest_wait():.2f} s after it was asked for at most")
    assert tally.faults == []
    assert tally.reasons(untouched) == {}
    assert tally.count("answered", untouched) == tally.count("sent", untouched)
    assert tally.count("failed", lost) > 0
    assert all(setback.says_when for setback in refused)
    # As where no process listens, and not after a deadline.
    assert set(tally.reasons()) <= {"503", "503 at its end"}
