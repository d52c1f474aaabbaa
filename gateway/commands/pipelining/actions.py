"""What ``sluice pipeline`` does, once its arguments are read."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.adapters.config_check import load_or_tell_all
from gateway.bootstrap.signals import stop_signals
from gateway.bootstrap.work import Work, WorkGiven, drain_queue, open_work, run_worker, spark_settings
from gateway.commands.pipelining.by_hand import run_by_hand, summary
from gateway.commands.pipelining.listing import to_json, to_text
from gateway.commands.pipelining.needs import check_needs
from gateway.commands.safe_json import to_safe_json
from gateway.commands.serve import begin
from gateway.config.load import Loaded, load
from gateway.config.schema import Config
from gateway.domain.job import Job, JobKind, JobState
from gateway.errors import InvalidArgument, Unsupported
from gateway.ports import utcnow
from gateway.work.craft import Craft, Wanted
from gateway.work.performance import Outcome
from gateway.work.redaction import is_secret

_INTERRUPTED = 130


class Actions:
    """Each takes the arguments of its command, and returns the exit status."""

    def __init__(
        self, given: WorkGiven, *, check: Callable[[Config, Mapping[str, str]], None] = check_needs
    ) -> None:
        self._given = given
        self._check = check

    def run_job(self, args: argparse.Namespace) -> int:
        config = load(args.config, self._given.env).config
        self._check(config, self._given.env)
        return asyncio.run(self._by_hand(config, args))

    def work(self, args: argparse.Namespace) -> int:
        def source() -> Loaded:
            return load_or_tell_all(args.config, self._given.env)

        config = begin(source)
        self._check(config, self._given.env)
        if args.once:
            outcomes = asyncio.run(drain_queue(config, self._given))
            return 1 if outcomes[Outcome.FAILED] or outcomes[Outcome.RETRIED] else 0
        if args.metrics:
            metrics = config.metrics.model_copy(update={"listen": args.metrics})
            config = config.model_copy(update={"metrics": metrics})
        asyncio.run(run_worker(config, source, args.config, self._given))
        return 0

    def print_plan(self, args: argparse.Namespace) -> int:
        order = asyncio.run(self._plan(load(args.config, self._given.env).config, args))
        if order is None:
            print("sluice: there is nothing to do", file=sys.stderr)
        else:
            print(to_safe_json(order))
        return 0

    def list_jobs(self, args: argparse.Namespace) -> int:
        jobs = asyncio.run(self._jobs(load(args.config, self._given.env).config))
        print(to_json(jobs) if args.format == "json" else to_text(jobs))
        return 0

    async def _by_hand(self, config: Config, args: argparse.Namespace) -> int:
        stop = asyncio.Event()
        with stop_signals(stop.set):
            async with open_work(config, self._given) as work:
                ran = await run_by_hand(work, _wanted(work, args), stop)
        print(*summary(ran), sep="\n")
        if stop.is_set():
            return _INTERRUPTED
        return 0 if all(one.performed.outcome is Outcome.DONE for one in ran) else 1

    async def _plan(self, config: Config, args: argparse.Namespace) -> dict[str, Any] | None:
        async with open_work(config, self._given) as work:
            job = _only(_wanted(work, args), args.name)
            plan = await _craft(work, args.kind).plan(job)
            if plan is None:
                return None
            access = await work.shop.places.settings(plan.locations)
        return {
            "id": "plan",
            "job": args.kind,
            "plan": {**plan.body, **({"continuous_seconds": args.continuous} if args.continuous else {})},
            "spark": spark_settings(config) | {"conf": _public(config.pipeline.spark.conf)},
            "access": _public(access),
        }

    async def _jobs(self, config: Config) -> Sequence[Job]:
        async with open_work(config, self._given) as work:
            return await work.queue.list_jobs(tuple(JobKind))


def _wanted(work: Work, args: argparse.Namespace) -> Sequence[Wanted]:
    return _craft(work, args.kind).named(args.name, args.recipient)


def _craft(work: Work, kind: JobKind) -> Craft:
    craft = work.shop.crafts.get(kind)
    if craft is None:
        raise Unsupported(f"this configuration has no jobs of the kind {kind}")
    return craft


def _only(wanted: Sequence[Wanted], name: str) -> Job:
    if len(wanted) != 1:
        raise InvalidArgument(f"{name} stands for {len(wanted)} jobs: name one of them by --recipient")
    (one,) = wanted
    return Job(
        key=one.key, sequence=0, state=JobState.QUEUED, parameters=one.parameters, requested_at=utcnow()
    )


def _public(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that are no secrets; who gives those is left to Spark's own configuration."""
    return {
        name: value
        for name, value in settings.items()
        if not is_secret(name) and not name.endswith(".aws.credentials.provider")
    }
