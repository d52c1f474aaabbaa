"""The replicas of a service are replaced one after the other, as a rollout does it, under load."""

from __future__ import annotations

import pytest

from tests.components import ENVOY, SPLIT, VALKEY
from tests.integration.fleet.metrics import until_at_work
from tests.integration.fleet.replicas import ALL

# Two seconds of load: an edge looks for a replica that was gone every second.
MEANWHILE = 50
# Attempts of hundreds that clients may have to make again, without anybody's notice.
FEW = 2

pytestmark = pytest.mark.component(SPLIT, ENVOY, VALKEY)


@pytest.mark.parametrize("service", ALL)
async def test_rolling_restart_costs_no_request_and_hardly_an_attempt(fleet, tell, service):
    async with fleet.loaded() as load:
        await load.answered(20)
        for replica in fleet.of(service):
            # Some of them are in its hands, and finish there.
            await load.read("slow query", 4)
            await fleet.replicas.restart(replica)
            # The next one may go when this one is in use, and so long that every edge has found it.
            await until_at_work(replica)
            await load.answered(MEANWHILE)
    tell(f"rolling restart: {service}", load.tally)
    assert load.tally.faults == []
    assert load.tally.count("answered") == load.tally.count("sent")
    # None, as a rule; a busy machine may be late to notice that a replica is back.
    assert sum(load.tally.reasons().values()) <= FEW
