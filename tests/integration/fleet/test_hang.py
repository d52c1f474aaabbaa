"""Vending hangs: it takes connections and calls, and answers nothing. Who asks for URLs does not notice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from tests.components import ENVOY, SPLIT, VALKEY
from tests.http import request
from tests.integration.fleet.front import edges_in_use, health_checks
from tests.integration.fleet.load import DIR_MODE, LISTS, URL_MODE, Load
from tests.integration.fleet.replicas import EDGE, until
from tests.integration.fleet.running import Fleet

pytestmark = pytest.mark.component(SPLIT, ENVOY, VALKEY)

UNTOUCHED = (*URL_MODE, *LISTS)
# Envoy leaves an edge alone when it has not answered two checks: the third begins when both are over.
CHECKS = 3
MEANWHILE = 60
# How many edges Envoy uses, and what it says of its own health.
Rotation = Counter[tuple[int, int]]


async def test_vending_that_hangs_leaves_urls_untouched_and_every_edge_in_use(fleet, recorded):
    one, other = fleet.of("vending")
    async with recorded("hang: vending", fleet.loaded(patience=0)) as load, observed(fleet) as rotation:
        await load.answered(20)
        with one.frozen():
            await go_on(load, fleet, rotation)
            with other.frozen():
                await go_on(load, fleet, rotation)
                waiting = load.tally.under_way["credential"]
        await load.answered(10, of=DIR_MODE)
    tally = load.tally
    load.note(f"edges in use and health of Envoy, and how often it was asked: {dict(rotation)}")
    load.note(f"{waiting} credentials were waited for when both went on")
    assert tally.faults == []
    assert tally.reasons(UNTOUCHED) == {}
    assert tally.count("answered", UNTOUCHED) == tally.count("sent", UNTOUCHED)
    # The others wait until it goes on, or are refused.
    assert waiting > 0
    assert tally.count("lost") == 0
    assert set(rotation) == {(len(fleet.of(EDGE)), 200)}


async def go_on(load: Load, fleet: Fleet, rotation: Rotation) -> None:
    """Have the load go on for as long as it takes Envoy to leave an edge alone."""
    edges = len(fleet.of(EDGE))
    aim = await asyncio.to_thread(health_checks, fleet.front) + CHECKS * edges
    await load.answered(MEANWHILE, of=UNTOUCHED)
    await until(lambda: health_checks(fleet.front) >= aim, "Envoy checks its edges")
    await asyncio.to_thread(look, fleet, rotation)


def look(fleet: Fleet, rotation: Rotation) -> None:
    """Ask Envoy which edges it uses, and whether it would be sent requests itself."""
    health = request(f"http://127.0.0.1:{fleet.front.ports.health}/healthz")
    rotation[edges_in_use(fleet.front), health.status] += 1


@asynccontextmanager
async def observed(fleet: Fleet) -> AsyncIterator[Rotation]:
    """Look at Envoy all the time."""
    rotation: Rotation = Counter()

    async def watch() -> None:
        while True:
            await asyncio.to_thread(look, fleet, rotation)
            await asyncio.sleep(0.1)

    watching = asyncio.create_task(watch())
    try:
        yield rotation
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
