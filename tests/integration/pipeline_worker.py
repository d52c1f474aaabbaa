"""A worker as ``sluice pipeline worker`` runs it, whose jobs need no Spark: they note what they did."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from gateway.adapters.json_log import configure_logging
from gateway.bootstrap.craft_parts import CraftParts
from gateway.bootstrap.work import WorkGiven, run_worker
from gateway.config.load import load
from gateway.domain.job import Job, JobKind
from gateway.ports import StateStore
from gateway.work.craft import Plan, Scheduled, Wanted
from tests.fakes import runner_script

RUNNER = [sys.executable, str(Path(runner_script.__file__))]


class NotingCraft:
    """A run appends a line to a file; publishing moves a job's effect on, by compare-and-swap."""

    def __init__(self, state: StateStore, runs: Path) -> None:
        self._state = state
        self._runs = runs

    def scheduled(self) -> Sequence[Scheduled]:
        return []

    def named(self, name: str, recipient: str = "") -> Sequence[Wanted]:
        return []

    async def plan(self, job: Job) -> Plan:
        line = f"{job.key.subject} {job.claimed_sequence} {os.getpid()}"
        sleep = float(job.parameters.get("sleep", 0.1))
        until = {"until": job.parameters["until"]} if "until" in job.parameters else {}
        return Plan(body={"append": str(self._runs), "line": line, "sleep": sleep, **until})

    async def publish(self, job: Job, plan: Plan, result: Mapping[str, Any]) -> None:
        key = f"views/{job.key.subject}.json"
        while True:
            entry = await self._state.get(key)
            effects: list[int] = json.loads(entry.content) if entry else []
            if job.claimed_sequence in effects:
                return
            content = json.dumps([*effects, job.claimed_sequence]).encode()
            put = self._state.replace(key, content, entry.tag) if entry else self._state.create(key, content)
            if await put is not None:
                return


def main() -> None:
    file, lease, grace = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    loaded = load(file, {})
    configure_logging("info")
    # Shorter than what a configuration may say: a test does not wait for half a minute.
    pipeline = loaded.config.pipeline.model_copy(update={"lease_time": timedelta(seconds=lease)})
    config = loaded.config.model_copy(update={"pipeline": pipeline, "grace": timedelta(seconds=grace)})

    def build(parts: CraftParts) -> Mapping[JobKind, NotingCraft]:
        return {JobKind.VIEW: NotingCraft(parts.state, file.with_name("runs"))}

    given = WorkGiven(env=dict(os.environ), runner=RUNNER, build=build)
    asyncio.run(run_worker(config, lambda: loaded, file, given))


if __name__ == "__main__":
    main()
