from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from gateway.bootstrap.departure import Departure


@dataclass
class World:
    """Everything that hears of the stop, and what it heard in which order."""

    is_watched: bool = False
    address: str = ""
    heard: list[str] = field(default_factory=list)
    leaving: asyncio.Event = field(default_factory=asyncio.Event)

    def drain(self) -> None:
        self.heard.append("not ready")

    async def stop(self) -> None:
        self.heard.append("not serving")

    def begin_stop(self) -> None:
        self.heard.append("grace counts")

    async def sleep(self, seconds: float) -> None:
        assert self.leaving.is_set()
        self.heard.append(f"served for {seconds} s")

    def departure(self, drain: timedelta, *, ships: bool = True) -> Departure:
        return Departure(
            ops=self,
            leaving=self.leaving,
            health=self,
            shipping=self if ships else None,
            drain=drain,
            sleep=self.sleep,
        )


async def test_the_grace_of_shipping_is_counted_from_the_end_of_drain():
    world = World()
    await world.departure(timedelta(seconds=20)).serve_on()
    assert world.heard == ["not ready", "not serving", "served for 20.0 s", "grace counts"]


@pytest.mark.parametrize(
    ("drain", "served"), [(timedelta(0), "served for 0.5 s"), (timedelta(seconds=2), "served for 2.0 s")]
)
async def test_who_watches_is_given_a_moment_to_notice(drain, served):
    world = World(is_watched=True)
    await world.departure(drain, ships=False).serve_on()
    assert world.heard == ["not ready", "not serving", served]
