"""The catalog's views over a state and a queue in memory."""

from __future__ import annotations

from gateway.domain.key import Key, Keys
from gateway.ports import Clock, Jobs, StateStore, utcnow
from gateway.services.catalog.queries import Queries
from gateway.services.catalog.showings import Showings
from gateway.services.catalog.views import Views
from tests.fakes.jobs import FakeJobs
from tests.fakes.state_store import FakeStateStore

KEYS = Keys(current=Key(id="k", secret=b"q" * 32))


def fake_views(clock: Clock = utcnow, state: StateStore | None = None, jobs: Jobs | None = None) -> Views:
    state = state or FakeStateStore(clock=clock)
    return Views(Showings(state, jobs or FakeJobs(clock), clock), Queries(state, KEYS, clock))
