"""Tells of logs that cannot be read: recipients by the table's name, the operator with its place."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final

from gateway.domain.grant import Grant
from gateway.domain.location import Location
from gateway.errors import GatewayError
from gateway.ports import Clock
from gateway.services.snapshot.log.fault import LogFault

# How long a fault that is still there goes without another warning.
_QUIET: Final = timedelta(hours=1)
# Of faults that are remembered; beyond that all are told anew.
_MOST: Final = 10_000

_log = logging.getLogger(__name__)


class FaultLog:
    """Warns once of each fault, however many requests meet it, and of one that stays now and then."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told_at: dict[tuple[Location, str], datetime] = {}

    @contextmanager
    def naming(self, grant: Grant) -> Iterator[None]:
        """Give a fault the table's name on its way to the recipient, and warn of it."""
        try:
            yield
        except GatewayError as exc:
            if not isinstance(exc.fault, LogFault):
                raise
            error = exc.fault.of(str(grant.table))
            if exc.fault.is_damage:
                self._warn(grant, exc.fault, error.message)
            raise error from exc

    def _warn(self, grant: Grant, fault: LogFault, message: str) -> None:
        now = self._clock()
        # By its file: a gap has other words for every version behind it.
        key = grant.location, fault.file or fault.problem
        told_at = self._told_at.get(key)
        if told_at is not None and timedelta(0) <= now - told_at < _QUIET:
            return
        if len(self._told_at) >= _MOST:
            self._told_at.clear()
        self._told_at[key] = now
        facts = {"table": str(grant.table), "location": str(grant.location), "error": message}
        if fault.file:
            facts["file"] = fault.file
        _log.warning("a table's log cannot be read", extra=facts)
