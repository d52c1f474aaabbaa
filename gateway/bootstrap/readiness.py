"""Whether the services that a process needs answer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from grpc import StatusCode, aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gateway.adapters.ops_server import OK, failing
from gateway.adapters.service_metrics import ServiceMetrics
from gateway.bootstrap.services import WIRE_NAMES
from gateway.config.schema import ServiceName

_TIMEOUT: Final = timedelta(seconds=2)
_INTERVAL: Final = timedelta(seconds=1)
# One replica that hangs is not a service that does: replicas take turns, so the next call meets another one.
_TRIES: Final = 2
# More than a look and the pause before it take, however busy the machine is: nobody looks any more.
_STALE: Final = timedelta(seconds=15)
_NO_ANSWER: Final = f"does not answer: {StatusCode.DEADLINE_EXCEEDED.name}"
# What access by URLs and access by directories take besides the catalog.
_MODES: Final = ((ServiceName.SNAPSHOT, ServiceName.PRESIGN), (ServiceName.VENDING,))

log = logging.getLogger(__name__)


class Readiness:
    """Asks each service's health over the channel that requests take, and shows who answers elsewhere."""

    def __init__(
        self,
        channels: Mapping[ServiceName, aio.Channel],
        elsewhere: Collection[ServiceName],
        metrics: ServiceMetrics,
        *,
        interval: timedelta = _INTERVAL,
        timeout: timedelta = _TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._elsewhere = elsewhere
        self._metrics = metrics
        self._interval = interval
        self._timeout = timeout
        self._clock = clock
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
            await asyncio.sleep(self._interval.total_seconds())

    def _see(self, name: ServiceName, state: str) -> None:
        self._seen[name] = state, self._clock()
        if name in self._elsewhere:
            self._metrics.set_reachable(name.value, is_reachable=state == OK)

    def _last_seen(self, name: ServiceName) -> str:
        if name not in self._seen:
            return "has not answered yet"
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
            answer = await self._stubs[name].Check(request, timeout=self._timeout.total_seconds())
        except aio.AioRpcError as exc:
            return f"does not answer: {exc.code().name}"
        serving = answer.status == health_pb2.HealthCheckResponse.SERVING
        return OK if serving else "does not serve"


def missing(states: Mapping[str, str]) -> Sequence[str]:
    """Return the services for want of which a process serves nothing.

    Either access mode is enough to go on: were the edge not ready for want of one, both would be gone.
    """
    serves = any(all(states.get(name) == OK for name in mode) for mode in _MODES)
    return () if serves and states.get(ServiceName.CATALOG, OK) == OK else failing(states)
