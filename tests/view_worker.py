"""A worker without Spark: it claims refreshes as a real one does, and writes what a test says they show."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from gateway.adapters.catalog_yaml import build_index
from gateway.adapters.job_queue import StateJobQueue
from gateway.adapters.view_index import CatalogShowings
from gateway.config.schema import Config
from gateway.domain.job import JobKind
from gateway.domain.location import Location
from gateway.ports import StateStore, Storage, utcnow
from gateway.work.view import Lives, ViewCraft
from tests.builders import Field, TableBuilder
from vendors.local.state import LocalState

FIELDS = (Field("number", "long"), Field("region", "string"))

# What a refresh shows, given the recipient's properties.
Show = Callable[[Mapping[str, str | None]], Sequence[dict[str, Any]]]
# Takes a directory that was made to where the plan wants it.
Deliver = Callable[[Path, str], None]


class NoStorages:
    def find(self, location: Location) -> Storage | None:
        return None


class ViewWorker:
    """Works on the state of a gateway that runs elsewhere, by the same configuration."""

    def __init__(
        self, settings: Mapping[str, Any], scratch: Path, show: Show, deliver: Deliver | None = None
    ) -> None:
        config = Config.model_validate(settings)
        self.state: StateStore = LocalState(Path(config.state.location))
        self.queue = StateJobQueue(
            self.state, worker=f"test-{secrets.token_hex(4)}", lease=timedelta(seconds=30), clock=utcnow
        )
        index = build_index(config)
        lives = Lives(urls=timedelta(hours=1), runs=timedelta(hours=1))
        self.craft = ViewCraft(
            views=CatalogShowings(lambda: index),
            state=self.state,
            storages=NoStorages(),
            lives=lives,
            clock=utcnow,
        )
        self._scratch = scratch
        self._show = show
        self._deliver = deliver or _moved

    def run(self) -> int:
        """Do all that is asked for, and tell how many refreshes that were."""
        return asyncio.run(self._run())

    def fail(self, error: str) -> int:
        """Have all that is asked for fail for good."""
        return asyncio.run(self._fail(error))

    async def _run(self) -> int:
        done = 0
        while (claim := await self.queue.claim({JobKind.VIEW})) is not None:
            plan = await self.craft.plan(claim.job)
            if plan is not None:
                await self.craft.publish(claim.job, plan, self._made(plan.body))
            assert await self.queue.complete(claim)
            done += 1
        return done

    async def _fail(self, error: str) -> int:
        done = 0
        while (claim := await self.queue.claim({JobKind.VIEW})) is not None:
            await self.queue.fail(claim, error, retry=False)
            done += 1
        return done

    def _made(self, plan: Mapping[str, Any]) -> dict[str, Any]:
        directory = self._scratch / secrets.token_hex(8)
        table = TableBuilder(directory, FIELDS).append(list(self._show(plan["parameters"])), files=2)
        self._deliver(directory, f"{plan['root_url']}/{plan['fresh_name']}")
        sources = {source["name"]: {"version": 0, "id": "source"} for source in plan["sources"]}
        return {"name": plan["fresh_name"], "version": table.version, "sources": sources, "kind": "full"}


def _moved(directory: Path, url: str) -> None:
    target = Path(url.removeprefix("file:"))
    target.parent.mkdir(parents=True, exist_ok=True)
    directory.rename(target)
