"""What a worker has to know of the tables of usage: one job for all of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.config.schema import UsageConfig
from gateway.domain.job import Job, JobKey, JobKind
from gateway.domain.location import parse_location
from gateway.errors import InvalidArgument
from gateway.work.craft import Plan, Scheduled, Wanted
from gateway.work.places import SparkPlaces

_WANTED: Final = Wanted(key=JobKey(kind=JobKind.USAGE))

log = logging.getLogger(__name__)


class UsageCraft:
    """Plans runs of the usage job. Its tables and its checkpoint hold all that must be known afterwards."""

    def __init__(self, usage: UsageConfig, places: SparkPlaces) -> None:
        self._usage = usage
        self._places = places

    def scheduled(self) -> Sequence[Scheduled]:
        usage = self._usage
        if usage.every is None or not (usage.landing and usage.location):
            return ()
        return (Scheduled(wanted=_WANTED, every=usage.every),)

    def named(self, name: str, recipient: str = "") -> Sequence[Wanted]:
        if name or recipient:
            raise InvalidArgument("there is one job for all of usage: name nothing")
        self._require_places()
        return (_WANTED,)

    async def plan(self, job: Job) -> Plan | None:
        self._require_places()
        landing, location = parse_location(self._usage.landing), parse_location(self._usage.location)
        body = {
            "landing_url": self._places.url(landing),
            "location_url": self._places.url(location),
            "max_files_per_trigger": None,
            "continuous_seconds": None,
        }
        return Plan(body=body, locations=(landing, location))

    async def publish(self, job: Job, plan: Plan, result: Mapping[str, Any]) -> None:
        log.info("the tables of usage are up to date", extra={"result": dict(result)})

    def _require_places(self) -> None:
        if not self._usage.landing:
            raise InvalidArgument("no segments are shipped: set usage.landing to where they should land")
        if not self._usage.location:
            raise InvalidArgument("there is no place for the tables of usage: set usage.location")
