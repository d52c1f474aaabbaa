"""Two services over one log: one that reads it itself, and one that has an index of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gateway.domain.grant import Audience, Grant
from gateway.domain.location import Location
from gateway.errors import GatewayError
from gateway.ports import StateStore
from gateway.services.snapshot.file_query import FileQueries
from gateway.services.snapshot.index.shelf import IndexShelf
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.index_loading import IndexLoader
from gateway.services.snapshot.state.store import SnapshotStore
from gateway.v1 import snapshot_pb2 as pb
from tests.fakes.grants import GRANT, Grants
from tests.fakes.snapshot_metrics import FakeSnapshotMetrics
from tests.unit.services.snapshot.answer.pages import seen
from tests.unit.services.snapshot.world import DELTA, Answer, World


class Served:
    """A service that has read nothing yet."""

    def __init__(
        self,
        log: TableLog,
        state: StateStore | None,
        *,
        grants: Grants | None = None,
        memory: int = 2**26,
        blocks: int = 2**16,
        **settings: int,
    ) -> None:
        self.log = log
        self.metrics = FakeSnapshotMetrics()
        indexes = None
        if state is not None:
            shelf = IndexShelf(state, self.metrics, memory=blocks)
            indexes = IndexLoader(shelf, **{"small_log": 0, **settings})
        world = World(grants)
        world.metrics = self.metrics
        self._world = world
        self.store = SnapshotStore(
            memory=memory, clock=world.grants.clock, metrics=self.metrics, indexes=indexes
        )
        self.queries: FileQueries = world.file_queries(self.store)
        self.grant = grant_of(log.location)

    async def query(self, **fields: Any) -> Answer:
        request = pb.QueryRequest(**{"capabilities": DELTA, **fields})
        parts = [part async for part in self.queries.answer(self.log, self.grant, request)]
        return Answer(head=parts[0].head, pages=[part.page for part in parts[1:-1]], end=parts[-1].end)

    async def pages(self, **fields: Any) -> list[Answer]:
        answers: list[Answer] = []
        while not answers or answers[-1].end.next_page_token:
            token = answers[-1].end.next_page_token if answers else ""
            answers.append(await self.query(**fields, page_token=token))
        return answers

    async def changes(self, since: int) -> Answer:
        """Return what came and went since a version."""
        request = pb.QueryRequest(capabilities=DELTA, starting_version=since)
        queries = self._world.change_queries(self.store)
        parts: list[Any] = [part async for part in queries.answer_stream(self.log, self.grant, request)]
        pages = [part for part in parts if isinstance(part, pb.FilePage)]
        return Answer(head=parts[0], pages=pages, end=parts[-1])

    async def error(self, **fields: Any) -> GatewayError:
        try:
            await self.query(**fields)
        except GatewayError as exc:
            return exc
        raise AssertionError("it was answered")


def grant_of(location: Location) -> Grant:
    return replace(GRANT, audience=Audience.SNAPSHOT, location=location)


def lines_of(answer: Answer) -> list[str]:
    """Return the lines of an answer's files, whatever order they came in."""
    # In which order a line has its members depends on what it is written together with.
    return sorted(json.dumps(line, sort_keys=True) for line in seen(*answer.pages))


def bytes_of(answers: Sequence[Answer]) -> list[tuple[bytes, list[bytes]]]:
    """Return the heads and pages of answers as they went out."""
    return [(answer.head.lines, [page.SerializeToString() for page in answer.pages]) for answer in answers]
