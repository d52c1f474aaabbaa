"""Whether the services that a process needs answer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from grpc import StatusCode, aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gateway.adapters.ops_server import OK, failing
from gateway.adapters.service_metrics import ServiceMetrics
from gateway.bootstrap.services import WIRE_NAMES
from gateway.config.schema import ServiceName

# One replica that hangs is not a service that does: replicas take turns, so the next call meets another one.
_TRIES: Final = 2
# More than a look and the pause before it take, however busy the machine is: nobody looks any more.
_STALE: Final = timedelta(seconds=15)
_NO_ANSWER: Final = f"does not answer: {StatusCode.DEADLINE_EXCEEDED.name}"
# The state of a service that was never reached, during start-up only.
NOT_REACHED_YET: Final = "has not answered yet"
# What access by URLs and access by directories take besides the catalog.
_MODES: Final = ((ServiceName.SNAPSHOT, ServiceName.PRESIGN), (ServiceName.VENDING,))

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTimes:
    interval: timedelta = timedelta(seconds=1)
    timeout: timedelta = timedelta(seconds=2)
    # Services that are deployed together come up together, so an edge first waits for all of them. Not for
    # ever: when the services of one access mode are down, it serves the other one.
    start_up: timedelta = timedelta(seconds=10)


class Readiness:
    """Asks each service's health over the channel that requests take, and shows who answers elsewhere."""

    def __init__(
        self,
        channels: Mapping[ServiceName, aio.Channel],
        elsewhere: Collection[ServiceName],
        metrics: ServiceMetrics,
        *,
        times: CheckTimes = CheckTimes(),  # noqa: B008  # frozen
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._elsewhere = elsewhere
        self._metrics = metrics
        self._times = times
        self._clock = clock
        self._start_up_until = clock() + times.start_up.total_seconds()
        self._reached: set[ServiceName] = set()
        self._stubs: dict[ServiceName, Any] = {
            name: health_pb2_grpc.HealthStub(channel) for name, channel in channels.items()
        }
        # What each answered last, and when.
        self._seen: dict[ServiceName, tuple[str, float]] = {}

    async def __call__(self) -> Mapping[str, str]:
        """Return what each service answered when it was last looked at, without asking it.

        Whoever asks does not wait long, and must not take a service that hangs for a process that does.
        """
        return {name.value: self._last_seen(name) for name in self._stubs}

    async def watch(self) -> None:
        """Look at each service again and again, beside each other: one that hangs holds up no other."""
        await asyncio.gather(*(self._watch(name) for name in self._stubs))

    async def _watch(self, name: ServiceName) -> None:
        while True:
            try:
                self._see(name, await self._look(name))
            except Exception:
                log.exception("whether services answer cannot be found out")
            await asyncio.sleep(self._times.interval.total_seconds())

    def _see(self, name: ServiceName, state: str) -> None:
        self._seen[name] = state, self._clock()
        if state == OK:
            self._reached.add(name)
        if name in self._elsewhere:
            self._metrics.set_reachable(name.value, is_reachable=state == OK)

    def _last_seen(self, name: ServiceName) -> str:
        if name not in self._reached and self._clock() < self._start_up_until:
            return NOT_REACHED_YET
        if name not in self._seen:
            return "does not answer"
        state, at = self._seen[name]
        return state if self._clock() - at <= _STALE.total_seconds() else "has not been asked for a while"

    async def _look(self, name: ServiceName) -> str:
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


def missing(states: Mapping[str, str]) -> Sequence[str]:
    """Return the services that keep a process from being ready.

    During start-up that is every service not yet reached. Later, either access mode is enough: if the edge
    were not ready without one, both would be unavailable.
    """
    is_starting = NOT_REACHED_YET in states.values()
    serves = any(all(states.get(name) == OK for name in mode) for mode in _MODES)
    has_catalog = states.get(ServiceName.CATALOG, OK) == OK
    return () if serves and has_catalog and not is_starting else failing(states)
