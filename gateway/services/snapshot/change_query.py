"""Queries for the changes of a table: the range is settled first, and pinned by the token of a next page."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

from gateway.domain.grant import Grant
from gateway.services.snapshot.changes.feed import open_feed, require_feed
from gateway.services.snapshot.changes.question import ChangeCursor, ChangesAsked, ChangeSource
from gateway.services.snapshot.changes.reader import Changes
from gateway.services.snapshot.changes.reading import ChangeRange
from gateway.services.snapshot.changes.stream import open_stream
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.paging import PageLimits
from gateway.services.snapshot.state.store import SnapshotStore
from gateway.services.snapshot.token import ChangePosition, FileTokens, bind, require_table
from gateway.services.snapshot.travel import VersionRange, find_range
from gateway.v1 import snapshot_pb2 as pb

# What an answer about changes is made of; the last one is its end.
Part = pb.TableHead | pb.FilePage | pb.AnswerEnd

_Open = Callable[[ChangeSource, ChangesAsked], Awaitable[Changes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    start: pb.TableAt
    end: pb.TableAt
    with_metadata: bool
    with_protocol: bool
    open: _Open
    # Of those that came with it, none is of use for changes.
    hints: pb.HintOutcome | None = None


class ChangeQueries:
    """Answers with what happened from one version to another."""

    def __init__(self, *, store: SnapshotStore, tokens: FileTokens, limits: PageLimits) -> None:
        self._store = store
        self._tokens = tokens
        self._limits = limits

    def answer_feed(self, log: TableLog, grant: Grant, request: pb.ChangesRequest) -> AsyncGenerator[Part]:
        """Answer with the change data feed."""
        require_feed(grant)
        question = _Question(
            start=request.start,
            end=request.end,
            with_metadata=request.include_historical_metadata,
            with_protocol=request.include_historical_protocol,
            open=open_feed,
        )
        return self._answer(log, grant, request, question)

    def answer_stream(self, log: TableLog, grant: Grant, request: pb.QueryRequest) -> AsyncGenerator[Part]:
        """Answer with the data files that came and went since a version."""
        end = pb.TableAt(version=request.ending_version) if request.HasField("ending_version") else None
        question = _Question(
            start=pb.TableAt(version=request.starting_version),
            end=end or pb.TableAt(),
            with_metadata=True,
            with_protocol=request.include_historical_protocol,
            open=open_stream,
            hints=_skipped(request),
        )
        return self._answer(log, grant, request, question)

    async def _answer(
        self, log: TableLog, grant: Grant, request: pb.QueryRequest | pb.ChangesRequest, question: _Question
    ) -> AsyncGenerator[Part]:
        binding = bind(grant, request)
        count = self._limits.count_of(request)
        after = None
        if request.page_token:
            after = self._tokens.open_page(request.page_token, binding, ChangePosition)
        versions = await self._range(log, grant, question, after)
        source = ChangeSource(
            log=log, store=self._store, listing=versions.listing, history=versions.history, grant=grant
        )
        asked = ChangesAsked(
            versions=ChangeRange(first=versions.first, last=versions.last),
            capabilities=request.capabilities,
            file_id_hash=request.file_id_hash,
            with_metadata=question.with_metadata,
            with_protocol=question.with_protocol,
            start=None if after is None else ChangeCursor(version=after.version, index=after.index),
            max_files=count,
        )
        changes = await question.open(source, asked)
        head = changes.head
        require_table(after, head.table)
        yield pb.TableHead(
            version=head.version,
            response_format=head.response_format,
            lines=head.lines,
            hints=question.hints,
        )
        async for page in changes.pages():
            yield page
        end = pb.AnswerEnd()
        if (stopped := changes.stopped_at) is not None:
            position = ChangePosition(
                start=versions.first,
                end=versions.last,
                version=stopped.version,
                index=stopped.index,
                table=head.table,
            )
            end.next_page_token = self._tokens.make_page(position, binding)
        yield end

    async def _range(
        self, log: TableLog, grant: Grant, question: _Question, after: ChangePosition | None
    ) -> VersionRange:
        start, end = question.start, question.end
        if after is not None:
            # As the first page found it, whatever was committed since.
            start, end = pb.TableAt(version=after.start), pb.TableAt(version=after.end)
        return await find_range(self._store, log, grant, start, end)


def _skipped(request: pb.QueryRequest) -> pb.HintOutcome:
    return pb.HintOutcome(skipped=len(request.predicate_hints) + bool(request.json_predicate_hints))
