"""A whole snapshot service over tables in a directory, and what a client sees of its answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from itertools import cycle
from typing import Any
from urllib.parse import unquote

from gateway.domain.grant import Audience
from gateway.domain.key import Key, Keys
from gateway.domain.location import parse_location
from gateway.ports import Storage, Storages
from gateway.services.snapshot.answer.rendered import RenderedPages
from gateway.services.snapshot.change_query import ChangeQueries
from gateway.services.snapshot.fault_log import FaultLog
from gateway.services.snapshot.file_query import FileQueries, HintSettings
from gateway.services.snapshot.paging import PageLimits
from gateway.services.snapshot.servicer import SnapshotServicer
from gateway.services.snapshot.state.store import SnapshotStore
from gateway.services.snapshot.token import FileTokens
from gateway.v1 import snapshot_pb2 as pb
from tests.builders import STARTED_AT, STEP, TableBuilder, location_of
from tests.fakes.grants import Grants
from tests.fakes.log_reader import FakeLogReader
from tests.fakes.snapshot_metrics import FakeSnapshotMetrics
from tests.fakes.storages import FakeStorages
from tests.unit.services.snapshot.answer.pages import seen

# The servicer takes everything from the request.
CONTEXT: Any = None
PAGE_LIFE = timedelta(hours=72)
REFRESH_LIFE = timedelta(hours=24)

NOTHING = pb.ReaderCapabilities()
PARQUET = pb.ReaderCapabilities(response_formats=[pb.RESPONSE_FORMAT_PARQUET])
DELTA = pb.ReaderCapabilities(
    response_formats=[pb.RESPONSE_FORMAT_DELTA], reader_features=["deletionvectors", "columnmapping"]
)
BOTH = pb.ReaderCapabilities(
    response_formats=[pb.RESPONSE_FORMAT_DELTA, pb.RESPONSE_FORMAT_PARQUET],
    reader_features=["deletionvectors"],
)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A whole answer, from its head to its end."""

    head: pb.TableHead
    pages: Sequence[pb.FilePage]
    end: pb.AnswerEnd

    @property
    def protocol(self) -> dict[str, Any]:
        return dict(json.loads(self.head.lines.splitlines()[0])["protocol"])

    @property
    def metadata(self) -> dict[str, Any]:
        return dict(json.loads(self.head.lines.splitlines()[1])["metaData"])

    @property
    def lines(self) -> list[dict[str, Any]]:
        return seen(*self.pages)

    @property
    def files(self) -> list[dict[str, Any]]:
        """Return the files of a version."""
        return [line["file"] for line in self.lines]

    @property
    def actions(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the name and the fields of each file's action, in either format."""
        found = (next(iter(line.items())) for line in self.lines if not {"protocol", "metaData"} & set(line))
        return [_unwrapped(name, fields) for name, fields in found]

    @property
    def paths(self) -> list[str]:
        """Return the paths of the files, relative to the table and decoded."""
        return [path_of(fields) for _, fields in self.actions]

    @property
    def told(self) -> list[tuple[str, str, int]]:
        """Return the action, the path and the version of each changed file, in the parquet format."""
        return [(name, path_of(fields), fields["version"]) for name, fields in self.actions]


class World:
    """One process with a snapshot service; with the grants of another one it shares keys and clock."""

    def __init__(
        self, grants: Grants | None = None, *, hints: HintSettings | None = None, files_per_page: int = 100
    ) -> None:
        self.grants = grants or Grants()
        self.reader = FakeLogReader()
        self.metrics = FakeSnapshotMetrics()
        self.store = SnapshotStore(memory=2**26, clock=self.grants.clock, metrics=self.metrics)
        self._hints = hints or HintSettings()
        self._limits = PageLimits(files=files_per_page)
        self._tokens = FileTokens(
            page_keys=Keys(current=Key(id="page", secret=b"p" * 32)),
            refresh_keys=Keys(current=Key(id="refresh", secret=b"r" * 32)),
            page_life=PAGE_LIFE,
            refresh_life=REFRESH_LIFE,
            clock=self.grants.clock,
        )
        disk = Storage(name="disk", prefix=parse_location("/"), reader=self.reader)
        self.servicer = self.serve(FakeStorages(disk))

    def serve(self, storages: Storages) -> SnapshotServicer:
        """Return the service over other storages."""
        return SnapshotServicer(
            storages=storages,
            verifier=self.grants.verifier(Audience.SNAPSHOT),
            store=self.store,
            files=self.file_queries(self.store),
            changes=self.change_queries(self.store),
            faults=FaultLog(self.grants.clock),
        )

    def file_queries(self, store: SnapshotStore) -> FileQueries:
        """Return what answers queries for files, over another store."""
        return FileQueries(
            store=store,
            tokens=self._tokens,
            limits=self._limits,
            hints=self._hints,
            rendered=RenderedPages(64 * 1024 * 1024, self.metrics),
            metrics=self.metrics,
        )

    def change_queries(self, store: SnapshotStore) -> ChangeQueries:
        """Return what answers queries for changes, over another store."""
        return ChangeQueries(store=store, tokens=self._tokens, limits=self._limits)

    def grant(self, table: TableBuilder, **changes: Any) -> str:
        facts = {
            "audience": Audience.SNAPSHOT,
            "location": location_of(table),
            "expires_at": self.grants.now + timedelta(seconds=60),
        }
        return self.grants.sign(**{**facts, **changes})

    async def version(self, table: TableBuilder, starting_timestamp: str = "", **changes: Any) -> int:
        request = pb.GetVersionRequest(
            grant=self.grant(table, **changes), starting_timestamp=starting_timestamp
        )
        return (await self.servicer.GetVersion(request, CONTEXT)).version

    async def metadata(
        self,
        table: TableBuilder,
        *,
        capabilities: pb.ReaderCapabilities = NOTHING,
        at: pb.TableAt | None = None,
        **changes: Any,
    ) -> pb.TableHead:
        request = pb.GetMetadataRequest(grant=self.grant(table, **changes), capabilities=capabilities, at=at)
        return (await self.servicer.GetMetadata(request, CONTEXT)).head

    def ask(
        self, table: TableBuilder, *, grant: dict[str, Any] | None = None, **fields: Any
    ) -> AsyncIterator[pb.QueryResponse]:
        """Begin a query, of which nothing is done before its parts are asked for."""
        request = pb.QueryRequest(grant=self.grant(table, **(grant or {})), **fields)
        return self.servicer.Query(request, CONTEXT)

    def ask_changes(
        self, table: TableBuilder, *, grant: dict[str, Any] | None = None, **fields: Any
    ) -> AsyncIterator[pb.ChangesResponse]:
        request = pb.ChangesRequest(grant=self.grant(table, **(grant or {})), **fields)
        return self.servicer.Changes(request, CONTEXT)

    async def query(self, table: TableBuilder, **fields: Any) -> Answer:
        return await _whole(self.ask(table, **fields))

    async def changes(self, table: TableBuilder, **fields: Any) -> Answer:
        return await _whole(self.ask_changes(table, **fields))

    async def query_pages(self, table: TableBuilder, *others: World, **fields: Any) -> list[Answer]:
        """Read all pages of a query, in turns with other processes."""
        return await _all_pages([world.query for world in (self, *others)], table, fields)

    async def changes_pages(self, table: TableBuilder, *others: World, **fields: Any) -> list[Answer]:
        return await _all_pages([world.changes for world in (self, *others)], table, fields)


class CountingExecutor(ThreadPoolExecutor):
    """Counts what it was given to do: every step of an answer's work off the event loop."""

    def __init__(self) -> None:
        super().__init__(max_workers=2)
        self.jobs = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.jobs += 1
        return super().submit(fn, *args, **kwargs)


def count_work() -> CountingExecutor:
    """Have the running loop count what it hands to threads from here on."""
    executor = CountingExecutor()
    asyncio.get_running_loop().set_default_executor(executor)
    return executor


def at_version(version: int) -> pb.TableAt:
    return pb.TableAt(version=version)


def at_time(text: str) -> pb.TableAt:
    return pb.TableAt(timestamp=text)


def iso(hours: float) -> str:
    """Return the time so many hours after the first commit of a built table; each commit takes one."""
    return (STARTED_AT + hours * STEP).isoformat()


def path_of(fields: dict[str, Any]) -> str:
    return unquote(str(fields.get("url", fields.get("path"))).removeprefix("https://0/"))


async def _whole(stream: AsyncIterator[Any]) -> Answer:
    parts = [part async for part in stream]
    kinds = [part.WhichOneof("part") for part in parts]
    assert kinds == ["head", *["page"] * (len(parts) - 2), "end"]
    return Answer(head=parts[0].head, pages=[part.page for part in parts[1:-1]], end=parts[-1].end)


async def _all_pages(
    asks: Sequence[Callable[..., Any]], table: TableBuilder, fields: dict[str, Any]
) -> list[Answer]:
    answers: list[Answer] = []
    token = fields.pop("page_token", "")
    for ask in cycle(asks):
        answers.append(await ask(table, page_token=token, **fields))
        token = answers[-1].end.next_page_token
        if not token:
            return answers
        assert len(answers) < 100, "a client would ask for ever"
    raise AssertionError("nobody was asked")


def _unwrapped(name: str, fields: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    action = fields.get("deltaSingleAction")
    return (name, fields) if action is None else next(iter(action.items()))
