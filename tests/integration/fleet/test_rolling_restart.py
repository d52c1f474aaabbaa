"""The replicas of a service are replaced one after the other, as a rollout does it, under load."""

from __future__ import annotations

import pytest

from tests.components import ENVOY, SPLIT, VALKEY
from tests.integration.fleet.metrics import until_at_work
from tests.integration.fleet.replicas import ALL

# What becomes of requests between two restarts.
MEANWHILE = 50

pytestmark = pytest.mark.component(SPLIT, ENVOY, VALKEY)


@pytest.mark.parametrize("service", ALL)
async def test_rolling_restart_costs_no_request_and_no_attempt(fleet, recorded, service):
    async with recorded(f"rolling restart: {service}", fleet.loaded()) as load:
        await load.answered(20)
        for replica in fleet.of(service):
            # Some of them are in its hands, and finish there.
            await load.read("slow query", 4)
            await fleet.replicas.restart(replica)
            # The next one may go when this one is in use by all that call it.
            await fleet.found([replica])
            await until_at_work(replica)
            await load.answered(MEANWHILE)
    assert load.tally.faults == []
    assert load.tally.count("answered") == load.tally.count("sent")
    assert load.tally.reasons() == {}
