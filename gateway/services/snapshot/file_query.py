"""Queries for the files of a version: settled before the first line, then answered page by page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from gateway.domain.grant import Grant
from gateway.errors import InvalidArgument, Unavailable
from gateway.ports import SnapshotMetrics
from gateway.services.snapshot.answer.file_id import choose_hash
from gateway.services.snapshot.answer.head import render_head
from gateway.services.snapshot.answer.limit import limited
from gateway.services.snapshot.answer.line import ActionKind, LineFormat
from gateway.services.snapshot.answer.negotiation import choose_format
from gateway.services.snapshot.answer.page import render_actions, render_files
from gateway.services.snapshot.answer.rendered import RenderedPages
from gateway.services.snapshot.finding import FileFinder, FilesAsked, FilesFound, IndexFinder
from gateway.services.snapshot.index.fault import IndexFault
from gateway.services.snapshot.large_schema import read_schema
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.paging import PageLimits
from gateway.services.snapshot.predicate.hints import JSON, SQL, Hints, parse_hints
from gateway.services.snapshot.state.snapshot import Snapshot
from gateway.services.snapshot.state.store import SnapshotStore
from gateway.services.snapshot.token import Binding, FilePosition, FileTokens, Pin, bind, require_table
from gateway.services.snapshot.travel import TableView, find_pinned, find_view
from gateway.services.snapshot.walk.pages import WalkedPages
from gateway.services.snapshot.walk.walking import Walk
from gateway.v1 import snapshot_pb2 as pb


@dataclass(frozen=True, slots=True, kw_only=True)
class HintSettings:
    """Which predicate hints are evaluated."""

    sql: bool = True
    json: bool = True


class FileQueries:
    """Answers with the files of a version: the latest, one of the past, or the one that a token pins."""

    def __init__(
        self,
        *,
        store: SnapshotStore,
        tokens: FileTokens,
        limits: PageLimits,
        hints: HintSettings,
        rendered: RenderedPages,
        metrics: SnapshotMetrics,
    ) -> None:
        self._store = store
        self._tokens = tokens
        self._limits = limits
        self._hints = hints
        self._rendered = rendered
        self._metrics = metrics
        self._finder = FileFinder(metrics)

    async def answer(
        self, log: TableLog, grant: Grant, request: pb.QueryRequest
    ) -> AsyncGenerator[pb.QueryResponse]:
        settled = await self._settle(log, grant, request)
        snapshot = settled.view.snapshot
        head = await read_schema(snapshot.metadata, lambda: _head(settled), snapshot.protocol)
        yield pb.QueryResponse(head=head)
        end = pb.AnswerEnd(refresh_token=self._refresh_token(settled))
        async with aclosing(self._pages(log, settled, end)) as pages:
            async for page in pages:
                yield pb.QueryResponse(page=page)
        yield pb.QueryResponse(end=end)

    async def _pages(
        self, log: TableLog, settled: _Settled, end: pb.AnswerEnd
    ) -> AsyncGenerator[pb.FilePage]:
        """Return one page at a time and only when it is asked for: who stops reading stops the work."""
        indexed, walk = settled.view.snapshot.indexed, settled.found.walk
        if settled.found.page is None and indexed is not None and walk is not None:
            try:
                async with aclosing(self._walked_pages(settled, walk)) as walked:
                    async for each in walked:
                        yield each
            except IndexFault as exc:
                # Some of it is out already, and in an order of its own.
                self._store.forsake(log, indexed, exc)
                raise Unavailable("what is known of the table's files was lost meanwhile; try again") from exc
            return
        pages = self._page(settled, end) if settled.found.page is not None else self._all_pages(settled)
        while (page := await asyncio.to_thread(next, pages, None)) is not None:
            yield page

    async def _walked_pages(self, settled: _Settled, walk: Walk) -> AsyncGenerator[pb.FilePage]:
        snapshot = settled.view.snapshot
        pages = WalkedPages(walk=walk, line=settled.line, grant=settled.grant, rendered=self._rendered)
        async with aclosing(pages.render(snapshot.files, settled.found.kept, settled.limit)) as rendered:
            async for page in rendered:
                yield page
        if settled.found.hints.condition is not None and settled.limit is None:
            self._metrics.count_pruned(pages.files, snapshot.num_files - pages.files)

    async def _settle(self, log: TableLog, grant: Grant, request: pb.QueryRequest) -> _Settled:
        try:
            return await self._settle_once(self._store, log, grant, request)
        except _Forsaken:
            # Others may still come by the index, and keep what they find by it.
            return await self._settle_once(self._store.by_log(), log, grant, request)

    async def _settle_once(
        self, store: SnapshotStore, log: TableLog, grant: Grant, request: pb.QueryRequest
    ) -> _Settled:
        """Return all that an answer depends on; raise before its first line what would stop it later."""
        limit = request.limit_hint if request.HasField("limit_hint") else None
        if limit is not None and limit < 0:
            raise InvalidArgument(f"limitHint must be greater than or equal to 0, not {limit}")
        count = self._limits.count_of(request)
        binding = bind(grant, request)
        after = (
            self._tokens.open_page(request.page_token, binding, FilePosition) if request.page_token else None
        )
        pinned = self._pinned(request, binding, after)
        view = await _view(store, log, grant, request, pinned)
        chosen = await read_schema(
            view.snapshot.metadata,
            lambda: choose_format(view.snapshot, request.capabilities, grant, discovery=False),
            view.snapshot.protocol,
        )
        file_id_hash = choose_hash(request.file_id_hash, chosen)
        asked = FilesAsked(
            files=view.snapshot.files,
            grant=grant,
            parse_hints=lambda: self._parse(request, view),
            count=count,
            after=None if after is None else (after.path, after.vector_id),
        )
        found = await self._find(log, view.snapshot, asked)
        if found.kept is not None or found.page is not None:
            self._store.measure(log, view.snapshot)
        return _Settled(
            request=request,
            grant=grant,
            view=view,
            response_format=chosen,
            file_id_hash=file_id_hash,
            found=found,
            binding=binding,
            limit=limit if after is None else after.limit,
        )

    async def _find(self, log: TableLog, snapshot: Snapshot, asked: FilesAsked) -> FilesFound:
        indexed = snapshot.indexed
        shelf = None if indexed is None else self._store.shelf
        if indexed is None or shelf is None:
            return await self._finder.find(log.location, asked)
        try:
            return await IndexFinder(shelf, self._metrics).find(indexed, asked)
        except IndexFault as exc:
            self._store.forsake(log, indexed, exc)
            raise _Forsaken from exc

    def _pinned(
        self, request: pb.QueryRequest, binding: Binding, after: FilePosition | None
    ) -> FilePosition | Pin | None:
        if after is None and request.refresh_token:
            return self._tokens.open_refresh(request.refresh_token, binding)
        return after

    def _parse(self, request: pb.QueryRequest, view: TableView) -> Hints:
        sql = request.predicate_hints if self._hints.sql else ()
        json = request.json_predicate_hints if self._hints.json else ""
        hints = parse_hints(sql, json, view.snapshot.metadata)
        sent = {SQL: len(request.predicate_hints), JSON: 1 if request.json_predicate_hints else 0}
        # Those of a kind that is switched off are skipped as well.
        hints = replace(hints, skipped={kind: sent[kind] - used for kind, used in hints.used.items()})
        for kind, used in hints.used.items():
            if sent[kind]:
                self._metrics.count_hints(kind, used, hints.skipped[kind])
        return hints

    def _refresh_token(self, settled: _Settled) -> str:
        if not settled.request.include_refresh_token:
            return ""
        snapshot = settled.view.snapshot
        pin = Pin(version=snapshot.version, table=snapshot.metadata.id)
        return self._tokens.make_refresh(pin, settled.binding)

    def _all_pages(self, settled: _Settled) -> Iterator[pb.FilePage]:
        return render_files(
            settled.view.snapshot.files,
            settled.line,
            settled.grant,
            kept=settled.found.kept,
            limit=settled.limit,
            rendered=self._rendered,
        )

    def _page(self, settled: _Settled, end: pb.AnswerEnd) -> Iterator[pb.FilePage]:
        """Render one page of a paged answer, and put into its end where the next one starts."""
        page, limit = settled.found.page, settled.limit
        if page is None or limit == 0:
            return
        rows, last = page.rows, page.last
        if limit is not None and not rows.is_empty():
            rows, limit = limited(rows, limit)
        if last is not None and limit != 0:
            position = FilePosition(
                version=settled.view.snapshot.version,
                path=last[0],
                vector_id=last[1],
                limit=limit,
                table=settled.view.snapshot.metadata.id,
            )
            end.next_page_token = self._tokens.make_page(position, settled.binding)
        yield from render_actions(rows, ActionKind.FILE, settled.line, settled.grant)


class _Forsaken(Exception):
    """The table is to be read by its log, and no longer by its index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settled:
    """A query of which nothing but the rendering is left to do."""

    request: pb.QueryRequest = field(repr=False)
    grant: Grant
    view: TableView
    response_format: pb.ResponseFormat.ValueType
    file_id_hash: pb.FileIdHash.ValueType
    found: FilesFound
    binding: Binding
    limit: int | None

    @property
    def line(self) -> LineFormat:
        return LineFormat(
            response_format=self.response_format,
            file_id_hash=self.file_id_hash,
            version=self.view.snapshot.version if self.view.is_historical else None,
            timestamp=self.view.timestamp,
        )


async def _view(
    store: SnapshotStore,
    log: TableLog,
    grant: Grant,
    request: pb.QueryRequest,
    pinned: FilePosition | Pin | None,
) -> TableView:
    if pinned is None:
        return await find_view(store, log, grant, request.at)
    view = await find_pinned(store, log, grant, request.at, pinned.version)
    require_table(pinned, view.snapshot.metadata.id)
    return view


def _head(settled: _Settled) -> pb.TableHead:
    hints = settled.found.hints
    return pb.TableHead(
        version=settled.view.snapshot.version,
        response_format=settled.response_format,
        lines=render_head(
            settled.view.snapshot,
            settled.grant,
            settled.response_format,
            with_version=settled.view.is_historical,
            declared=settled.request.capabilities.reader_features,
        ),
        hints=pb.HintOutcome(used=sum(hints.used.values()), skipped=sum(hints.skipped.values())),
    )
