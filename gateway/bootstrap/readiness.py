"""Health of the services that a process needs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from grpc import StatusCode, aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gateway.adapters.ops_server import OK, failing
from gateway.adapters.service_metrics import ServiceMetrics
from gateway.bootstrap.services import WIRE_NAMES
from gateway.config.schema import ServiceName

# A replica that hangs is not a service that hangs: another replica receives the next call.
_TRIES: Final = 2
# The age from which a state counts as unknown: the task that checks has stopped.
_STALE: Final = timedelta(seconds=15)
_NO_ANSWER: Final = f"does not answer: {StatusCode.DEADLINE_EXCEEDED.name}"
# How the state of a service that was never reached begins, during start-up only.
NOT_REACHED_YET: Final = "not reached yet"
# What access by URLs and access by directories take besides the catalog.
_MODES: Final = ((ServiceName.SNAPSHOT, ServiceName.PRESIGN), (ServiceName.VENDING,))

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTimes:
    interval: timedelta = timedelta(seconds=1)
    timeout: timedelta = timedelta(seconds=2)
    # Services that are deployed together come up together, so an edge first waits for all of them. After
    # this, one access mode is enough.
    start_up: timedelta = timedelta(seconds=10)


class Readiness:
    """The health of each service, checked periodically over the channels of requests.

    Reachability of services in other processes is also exported as a metric.
    """

    def __init__(
        self,
        channels: Mapping[ServiceName, aio.Channel],
        remote: Collection[ServiceName],
        metrics: ServiceMetrics,
        *,
        times: CheckTimes = CheckTimes(),  # noqa: B008  # frozen
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._remote = remote
        self._metrics = metrics
        self._times = times
        self._clock = clock
        self._start_up_until = clock() + times.start_up.total_seconds()
        self._reached: set[ServiceName] = set()
        self._reached_another = asyncio.Event()
        self._stubs: dict[ServiceName, Any] = {
            name: health_pb2_grpc.HealthStub(channel) for name, channel in channels.items()
        }
        # The last state of each, and when it was checked.
        self._states: dict[ServiceName, tuple[str, float]] = {}

    async def __call__(self) -> Mapping[str, str]:
        """Return the last known state of each service, without a call.

        A prober waits briefly, and must not mistake a service that hangs for a process that hangs.
        """
        return {name.value: self._last_state(name) for name in self._stubs}

    async def watch(self) -> None:
        """Check all services concurrently, until cancelled: one that hangs does not delay the others."""
        await asyncio.gather(*(self._watch(name) for name in self._stubs))

    async def reach_services(self) -> None:
        """Wait until every service is reached, and no longer than start-up. `watch` must be running."""
        while self._reached != self._stubs.keys() and self._clock() < self._start_up_until:
            self._reached_another.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._times.interval.total_seconds()):
                    await self._reached_another.wait()

    async def _watch(self, name: ServiceName) -> None:
        while True:
            try:
                self._note(name, await self._check_with_retry(name))
            except Exception:
                log.exception("failed to check the health of a service", extra={"service": name.value})
            await asyncio.sleep(self._times.interval.total_seconds())

    def _note(self, name: ServiceName, state: str) -> None:
        self._states[name] = state, self._clock()
        if state == OK:
            self._reached.add(name)
            self._reached_another.set()
        if name in self._remote:
            self._metrics.set_reachable(name.value, is_reachable=state == OK)

    def _last_state(self, name: ServiceName) -> str:
        if name not in self._states:
            state = "does not answer"
        else:
            state, checked_at = self._states[name]
            if self._clock() - checked_at > _STALE.total_seconds():
                state = "not checked recently"
        never_reached = name not in self._reached and self._clock() < self._start_up_until
        return f"{NOT_REACHED_YET}: {state}" if never_reached else state

    async def _check_with_retry(self, name: ServiceName) -> str:
        for _ in range(_TRIES):
            state = await self._check(name)
            if state != _NO_ANSWER:
                break
        return state

    async def _check(self, name: ServiceName) -> str:
        request = health_pb2.HealthCheckRequest(service=WIRE_NAMES[name])
        try:
            answer = await self._stubs[name].Check(request, timeout=self._times.timeout.total_seconds())
        except aio.AioRpcError as exc:
            return f"does not answer: {exc.code().name}"
        serving = answer.status == health_pb2.HealthCheckResponse.SERVING
        return OK if serving else "does not serve"


def is_starting(state: str) -> bool:
    """True if a state is that of a service not reached since start-up began."""
    return state.startswith(NOT_REACHED_YET)


def missing(states: Mapping[str, str]) -> Sequence[str]:
    """Return the services that keep a process from being ready.

    During start-up that is every service not yet reached. Later, either access mode is enough: if the edge
    were not ready without one, both would be unavailable.
    """
    is_starting_up = any(map(is_starting, states.values()))
    serves = any(all(states.get(name) == OK for name in mode) for mode in _MODES)
    has_catalog = states.get(ServiceName.CATALOG, OK) == OK
    return () if serves and has_catalog and not is_starting_up else failing(states)
