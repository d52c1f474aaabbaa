"""Killing a process while it has something in hand, and knowing what that was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.deployments import SERVICES
from tests.integration.fleet.front import requests_at
from tests.integration.fleet.load import Load
from tests.integration.fleet.replicas import EDGE, Replica
from tests.integration.fleet.running import Fleet
from tests.integration.fleet.tally import Setback
from tests.waiting import eventually

_DEADLINE = 120
_PAUSE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """What a process had in hand when it was killed."""

    # How many requests, and how many others were under way besides.
    requests: int
    others: int
    # Whether the attempt that came to nothing was one of them.
    had: Callable[[Setback], bool]


def kill_at_work(victim: Replica, fleet: Fleet, load: Load) -> Hands:
    """Kill a process at a moment at which it has something in hand, and others have, too.

    It is held still for each look, so that nothing changes between the look and the kill.
    """
    look = _edge(victim, fleet) if victim.service == EDGE else _service(victim, fleet)

    def kill() -> Hands | None:
        with victim.frozen():
            requests, had = look()
            others = load.tally.under_way.total() - requests
            if requests > 0 and others > 0:
                victim.kill()
                return Hands(requests=requests, others=others, had=had)
        return None

    return eventually(kill, f"{victim.name} has requests in hand", seconds=_DEADLINE, pause=_PAUSE)


Look = Callable[[], tuple[int, Callable[[Setback], bool]]]


def _service(victim: Replica, fleet: Fleet) -> Look:
    journal = victim.journal()
    elsewhere = [other.journal() for other in fleet.replicas.every(SERVICES) if other is not victim]

    def look() -> tuple[int, Callable[[Setback], bool]]:
        ids = frozenset(journal.calls())
        others = frozenset(id_ for reader in elsewhere for id_ in reader.calls())
        # What has been sent to it and not yet begun is in no journal: it is nobody else's, either.
        return len(ids), lambda setback: setback.request_id in ids or setback.request_id not in others

    return look


def _edge(victim: Replica, fleet: Fleet) -> Look:
    def had(setback: Setback) -> bool:
        # Envoy's log has a line for each request that has ended, with the edge that it was sent to last.
        lines = (line for line in fleet.front.access_log() if line["request_id"] == setback.request_id)
        return any(line["edge"] == victim.address for line in lines)

    return lambda: (requests_at(fleet.front, victim), had)
