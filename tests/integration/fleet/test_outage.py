"""One of the two ways to be given access is gone altogether, then Redis with it: the other goes on."""

from __future__ import annotations

import asyncio

import pytest

from tests.components import ENVOY, SPLIT, VALKEY
from tests.integration.fleet.load import DIR_MODE, LISTS, STREAMS, URL_MODE

pytestmark = pytest.mark.component(SPLIT, ENVOY, VALKEY)

# What is lost with a service, and what must not feel it.
CASES = {
    "vending": (DIR_MODE, (*URL_MODE, *LISTS)),
    "presign": (STREAMS, (*DIR_MODE, *LISTS, "metadata", "file")),
}
AT_ONCE = 10


@pytest.mark.parametrize("service", CASES)
async def test_outage_of_one_access_mode_leaves_the_other_untouched(fleet, tell, service):
    lost, untouched = CASES[service]
    async with fleet.loaded(patience=0) as load:
        await load.answered(20)
        for replica in fleet.of(service):
            await asyncio.to_thread(replica.kill)
        await load.answered(40, of=untouched)
        await asyncio.to_thread(fleet.redis.kill)
        await load.answered(40, of=untouched)
        fleet.redis.start()
        await fleet.replicas.start(fleet.of(service))
        await load.answered(5, of=lost)
    tally = load.tally
    longest = max(setback.ended_at - setback.began_at for setback in tally.setbacks)
    tell(f"outage: {service}", tally, f"the longest wait for a refusal took {longest:.2f} s")
    assert tally.faults == []
    assert tally.reasons(untouched) == {}
    assert tally.count("answered", untouched) == tally.count("sent", untouched)
    assert tally.count("failed", lost) > 0
    refused = [setback for setback in tally.setbacks if setback.reason == "503"]
    assert refused
    assert all(setback.says_when for setback in refused)
    assert longest < AT_ONCE
