"""A servicer that plays the snapshot service over a small world."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from gateway.domain.grant import Audience, Grant
from gateway.domain.key import Key, Keys
from gateway.domain.location import parse_location
from gateway.domain.name import TableName
from gateway.domain.table import AccessMode
from gateway.errors import InvalidArgument, Unsupported
from gateway.rpc.metadata import Metadata
from gateway.services.snapshot.token import ChangePosition, FilePosition, FileTokens, Pin, bind
from gateway.v1 import catalog_pb2 as catalog
from gateway.v1 import snapshot_pb2 as pb
from gateway.v1.snapshot_pb2_grpc import SnapshotServicer
from tests.fakes.page import page_of
from tests.fakes.table_lines import Line, Lines
from tests.fakes.world import FakeTable, World, open_grant
from tests.waiting import eventually_async

# Hints that name the one column, or the column that the suite's partitioned tables have.
_USABLE = re.compile(r"(n|day) *(=|<|>) *\S+")
_ZONED = re.compile(r".*(Z|[+-]\d\d:\d\d)")
# When version 0 of every table was made.
_BEGINNING = "1970-01-01T00:00:00Z"
# Turns of the loop after which a stream that could go on would have.
_QUIET_TURNS = 50
_KEYS = Keys(current=Key(id="k", secret=b"fake" * 8))


@dataclass(frozen=True, kw_only=True)
class _Answer:
    head: pb.TableHead
    pages: Iterable[pb.FilePage]
    end: pb.AnswerEnd


@dataclass
class FakeSnapshot(SnapshotServicer):
    """After ``fail_after`` pages it raises ``error``; before each it waits for ``gate``, if there is one."""

    world: World
    error: Exception | None = None
    fail_after: int | None = None
    gate: asyncio.Semaphore | None = None
    # Leave the last message out, as a service that was cut off would.
    cut: bool = False
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    requests: list[Any] = field(default_factory=list)
    metadata: list[Metadata] = field(default_factory=list)
    timeouts: list[float | None] = field(default_factory=list)
    pages: int = 0
    closed: int = 0

    async def GetVersion(self, request: pb.GetVersionRequest, context: Any) -> pb.GetVersionResponse:
        table, _ = self._open(request, context)
        _check_timestamp(request.starting_timestamp, table)
        return pb.GetVersionResponse(version=table.version)

    async def GetMetadata(self, request: pb.GetMetadataRequest, context: Any) -> pb.GetMetadataResponse:
        table, _ = self._open(request, context)
        version = _travel(table, request.at)
        lines = _lines(table, request.capabilities)
        shown = table.version if version is None else version
        return pb.GetMetadataResponse(head=_head(lines, shown, version))

    async def Query(self, request: pb.QueryRequest, context: Any) -> AsyncIterator[pb.QueryResponse]:
        try:
            table, grant = self._open(request, context)
            lines = _lines(table, request.capabilities, request.file_id_hash)
            answer = (
                self._since(request, lines, grant)
                if request.HasField("starting_version")
                else self._files(request, lines, grant)
            )
            answer.head.hints.CopyFrom(_hints(request))
            yield pb.QueryResponse(head=answer.head)
            async for page in self._paced(answer.pages):
                yield pb.QueryResponse(page=page)
            if not self.cut:
                yield pb.QueryResponse(end=answer.end)
        finally:
            self.closed += 1

    async def Changes(self, request: pb.ChangesRequest, context: Any) -> AsyncIterator[pb.ChangesResponse]:
        try:
            table, grant = self._open(request, context)
            answer = self._feed(request, _lines(table, request.capabilities, request.file_id_hash), grant)
            yield pb.ChangesResponse(head=answer.head)
            async for page in self._paced(answer.pages):
                yield pb.ChangesResponse(page=page)
            if not self.cut:
                yield pb.ChangesResponse(end=answer.end)
        finally:
            self.closed += 1

    async def settled_pages(self, least: int = 1) -> int:
        """Wait for a number of pages, then until the loop turns often without another; return the number."""
        await eventually_async(lambda: self.pages >= least)
        # Counted in turns of the loop: a machine that is busy slows both.
        made, quiet = self.pages, 0
        while quiet < _QUIET_TURNS:
            await asyncio.sleep(0.01)
            quiet = quiet + 1 if made == self.pages else 0
            made = self.pages
        return made

    async def _paced(self, pages: Iterable[pb.FilePage]) -> AsyncIterator[pb.FilePage]:
        for page in pages:
            if self.gate is not None:
                await self.gate.acquire()
            if self.fail_after == self.pages:
                raise self.error or RuntimeError("a fault that nobody foresaw")
            self.pages += 1
            yield page

    def _files(self, request: pb.QueryRequest, lines: Lines, grant: Grant) -> _Answer:
        table, binding, after = lines.table, bind(grant, request), ""
        version = _travel(table, request.at)
        pinned = table.version if version is None else version
        if request.refresh_token:
            pinned = self._tokens().open_refresh(request.refresh_token, binding).version
        if request.page_token:
            position = self._tokens().open_page(request.page_token, binding, FilePosition)
            pinned, after = position.version, position.path
        paths = lines.files()
        paths = paths[: request.limit_hint] if request.HasField("limit_hint") else paths
        rest = [path for path in paths if path > after]
        shown = rest[: request.max_files] if request.HasField("max_files") else rest
        end = pb.AnswerEnd()
        if len(shown) < len(rest):
            last = FilePosition(version=pinned, path=shown[-1], vector_id="")
            end.next_page_token = self._tokens().make_page(last, binding)
        if request.include_refresh_token:
            end.refresh_token = self._tokens().make_refresh(Pin(version=pinned), binding)
        pages = self._pages(lines.file(path, version) for path in shown)
        return _Answer(head=_head(lines, pinned, version), pages=pages, end=end)

    def _since(self, request: pb.QueryRequest, lines: Lines, grant: Grant) -> _Answer:
        table = lines.table
        if not table.history_shared:
            raise _history_error()
        asked = request.ending_version if request.HasField("ending_version") else None
        first, last = _range(table, request.starting_version, asked)
        return self._changes(request, lines, grant, (first, last), history=True)

    def _feed(self, request: pb.ChangesRequest, lines: Lines, grant: Grant) -> _Answer:
        table = lines.table
        if not table.history_shared or not table.change_feed:
            raise InvalidArgument(f"cdf is not enabled on table {table.share}.{table.schema}.{table.name}")
        for at in (request.start, request.end):
            _check_timestamp(at.timestamp, table)
        start = request.start.version if request.start.WhichOneof("at") == "version" else 0
        end = request.end.version if request.end.WhichOneof("at") == "version" else None
        history = request.include_historical_metadata
        return self._changes(request, lines, grant, _range(table, start, end), history=history)

    def _changes(
        self,
        request: pb.QueryRequest | pb.ChangesRequest,
        lines: Lines,
        grant: Grant,
        versions: tuple[int, int],
        *,
        history: bool,
    ) -> _Answer:
        (first, last), binding, at = versions, bind(grant, request), (0, 0)
        if request.page_token:
            position = self._tokens().open_page(request.page_token, binding, ChangePosition)
            at = position.version, position.index
        feed = isinstance(request, pb.ChangesRequest)
        rest = [item for item in lines.changes(first, last, feed=feed) if item[:2] >= at]
        shown = rest[: request.max_files] if request.HasField("max_files") else rest
        end = pb.AnswerEnd()
        if len(shown) < len(rest):
            version, index, _ = rest[len(shown)]
            following = ChangePosition(start=first, end=last, version=version, index=index)
            end.next_page_token = self._tokens().make_page(following, binding)
        told = [line for _, _, line in shown]
        if history and not request.page_token:
            told += [line for _, line in lines.historical(first, last)]
        named = request.include_historical_protocol and lines.is_delta
        head = _head(lines, first, first, with_protocol_version=named)
        return _Answer(head=head, pages=self._pages(iter(told)), end=end)

    def _pages(self, lines: Iterator[Line]) -> Iterator[pb.FilePage]:
        page: list[Line] = []
        for line in lines:
            page.append(line)
            if len(page) == self.world.files_per_page:
                yield page_of(page, _count(page))
                page = []
        if page:
            yield page_of(page, _count(page))

    def _tokens(self) -> FileTokens:
        return FileTokens(
            page_keys=_KEYS,
            refresh_keys=_KEYS,
            page_life=timedelta(hours=72),
            refresh_life=timedelta(hours=24),
            clock=self.now,
        )

    def _open(self, request: Any, context: Any) -> tuple[FakeTable, Grant]:
        self.requests.append(request)
        self.metadata.append(context.invocation_metadata())
        self.timeouts.append(context.time_remaining())
        if self.error is not None and self.fail_after is None:
            raise self.error
        table, principal = open_grant(self.world, request.grant, catalog.AUDIENCE_SNAPSHOT)
        return table, _grant_of(table, principal)


def _count(lines: Iterable[Line]) -> int:
    return sum("metaData" not in line for line in lines)


def _grant_of(table: FakeTable, principal: str) -> Grant:
    return Grant(
        principal=principal,
        audience=Audience.SNAPSHOT,
        table=TableName(table.share, table.schema, table.name),
        table_id=table.id,
        location=parse_location(table.location),
        access_modes=(AccessMode.URL,),
        history_shared=table.history_shared,
        generation="",
        expires_at=datetime.max.replace(tzinfo=UTC),
    )


def _lines(
    table: FakeTable,
    capabilities: pb.ReaderCapabilities,
    file_id_hash: pb.FileIdHash.ValueType = pb.FILE_ID_HASH_UNSPECIFIED,
) -> Lines:
    formats = capabilities.response_formats or [pb.RESPONSE_FORMAT_PARQUET]
    response_format = pb.RESPONSE_FORMAT_PARQUET
    if table.vectors or pb.RESPONSE_FORMAT_PARQUET not in formats:
        response_format = pb.RESPONSE_FORMAT_DELTA
    if response_format not in formats:
        raise Unsupported("Unsupported Delta Table Properties: the table uses deletionVectors")
    return Lines(table=table, response_format=response_format, file_id_hash=file_id_hash)


def _head(
    lines: Lines, version: int, named: int | None, *, with_protocol_version: bool = False
) -> pb.TableHead:
    return pb.TableHead(
        version=version,
        response_format=lines.response_format,
        lines=lines.head(named, with_protocol_version=with_protocol_version),
    )


def _hints(request: pb.QueryRequest) -> pb.HintOutcome:
    hints = [*request.predicate_hints, *filter(None, [request.json_predicate_hints])]
    used = sum(_USABLE.fullmatch(hint) is not None for hint in hints)
    return pb.HintOutcome(used=used, skipped=len(hints) - used)


def _travel(table: FakeTable, at: pb.TableAt) -> int | None:
    """Return the version that is asked for by number or time; None: none is."""
    asked = at.WhichOneof("at")
    if asked is None:
        return None
    if not table.history_shared:
        raise _history_error()
    _check_timestamp(at.timestamp, table)
    if asked == "timestamp" and at.timestamp < _BEGINNING:
        raise InvalidArgument(f"the timestamp must be greater than or equal to {_BEGINNING}")
    version = at.version if asked == "version" else table.version
    return _range(table, version, None)[0]


def _range(table: FakeTable, start: int, end: int | None) -> tuple[int, int]:
    if start < table.start_version:
        raise InvalidArgument(f"You can only query table data since version {table.start_version}")
    if start > table.version:
        raise InvalidArgument(f"version {start} is after the latest available version {table.version}")
    if end is not None and end < start:
        raise InvalidArgument(f"endingVersion must be greater than or equal to startingVersion {start}")
    return start, table.version if end is None else min(end, table.version)


def _check_timestamp(text: str, table: FakeTable) -> None:
    if text and not _ZONED.fullmatch(text):
        raise InvalidArgument(f"{text!r} is not a timestamp such as 2022-01-01T00:00:00Z")
    if text and not table.history_shared:
        raise _history_error()


def _history_error() -> InvalidArgument:
    return InvalidArgument("Reading table by version or timestamp is not supported on this table")
