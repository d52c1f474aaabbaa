from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.domain.job import Job, JobKey, JobKind
from gateway.errors import NotFound
from gateway.work.craft import Plan, Scheduled, Wanted


class FakeCraft:
    """Plans and publishes what a test says, and remembers what it was asked."""

    def __init__(self, kind: JobKind = JobKind.VIEW) -> None:
        self.kind = kind
        self.schedules: list[Scheduled] = []
        self.next_plan: Plan | Exception | None = Plan(body={"do": "it"})
        self.publish_error: Exception | None = None
        self.planned: list[Job] = []
        self.published: list[tuple[Job, Mapping[str, Any]]] = []

    def scheduled(self) -> Sequence[Scheduled]:
        return self.schedules

    def named(self, name: str, recipient: str = "") -> Sequence[Wanted]:
        if name == "unknown":
            raise NotFound("there is nothing of that name")
        key = JobKey(kind=self.kind, subject=f"{name} {recipient}".strip())
        return [Wanted(key=key, parameters={"name": name, "recipient": recipient})]

    async def plan(self, job: Job) -> Plan | None:
        self.planned.append(job)
        if isinstance(self.next_plan, Exception):
            raise self.next_plan
        return self.next_plan

    async def publish(self, job: Job, plan: Plan, result: Mapping[str, Any]) -> None:
        if self.publish_error is not None:
            raise self.publish_error
        self.published.append((job, result))
