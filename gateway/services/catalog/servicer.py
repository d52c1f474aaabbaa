"""The catalog service: resolves names to grants, and lists what a caller may see."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import TypeVar, cast

from gateway.domain.key import Keys
from gateway.domain.name import TableName, fold
from gateway.domain.principal import Principal
from gateway.domain.table import Schema, Share, Table
from gateway.domain.window import EPOCH
from gateway.errors import GatewayError, NotFound
from gateway.ports import AuditLog, CatalogStore, Clock
from gateway.rpc.metadata import request_id_of
from gateway.rpc.peer import peer_of
from gateway.rpc.status import Context
from gateway.services.catalog.callers import Asker, Callers, Visitor
from gateway.services.catalog.codec import (
    audiences_from_proto,
    schema_to_proto,
    share_to_proto,
    table_to_proto,
)
from gateway.services.catalog.grant_cache import GrantCache
from gateway.services.catalog.grant_signer import GrantSigner
from gateway.services.catalog.list_cache import ListCache, ListKey, ListResponse
from gateway.services.catalog.operation import Operation
from gateway.services.catalog.paging import Page, Pages
from gateway.services.catalog.quoting import quoted
from gateway.services.catalog.trail import Call, Trail
from gateway.services.catalog.views import Resolved, Views
from gateway.v1 import catalog_pb2 as pb
from gateway.v1 import catalog_pb2_grpc

Found = TypeVar("Found")
Answer = TypeVar("Answer", bound=ListResponse)


class CatalogServicer(catalog_pb2_grpc.CatalogServicer):
    """Answers for what is granted; for the rest as for what does not exist."""

    def __init__(
        self,
        *,
        store: CatalogStore,
        signer: GrantSigner,
        page_keys: Keys,
        views: Views,
        audit: AuditLog,
        clock: Clock,
    ) -> None:
        self._store = store
        self._views = views
        self._callers = Callers(store, clock)
        self._grants = GrantCache(signer, clock)
        self._pages = Pages(page_keys)
        self._lists = ListCache()
        self._trail = Trail(audit, clock)
        self._clock = clock

    async def Resolve(self, request: pb.ResolveRequest, context: Context) -> pb.ResolveResponse:
        name = TableName(request.share, request.schema, request.table)
        operation = Operation("Resolve", name.share, name.schema, name.table)
        async with self._asking(operation, request.caller, context) as (asker, call):
            audiences = audiences_from_proto(request.audiences)
            entry = _existing(await self._store.find_table(asker.principal, name), "table", str(name))
            # Of what was found: content may come in between.
            generation = self._store.generation
            asked = request.query if request.HasField("query") else None
            resolved = await self._views.resolve(asker.principal, entry, asked)
            if not resolved.is_ready:
                self._trail.note_answer(call, asker)
                return _waiting(asker, resolved)
            table = resolved.table
            signed = [self._grants.find_or_sign(asker, table, generation, audience) for audience in audiences]
            expires_at = min(grant.expires_at for grant in signed)
            await self._trail.keep_grant(call, asker, table, audiences, expires_at)
        return pb.ResolveResponse(
            principal=asker.principal.name,
            query=resolved.query,
            table=table_to_proto(table),
            grants=[grant.token for grant in signed],
            expires_at_ms=_milliseconds(expires_at),
            revoked_at_ms=_milliseconds(asker.principal.revoked_at or EPOCH),
        )

    async def ListShares(self, request: pb.ListSharesRequest, context: Context) -> pb.ListSharesResponse:
        operation = Operation("ListShares")
        async with self._asking(operation, request.caller, context) as (asker, call):
            page = self._pages.open(operation, request)
            answer = await self._listed(asker, page, self._list_shares)
            self._trail.note_answer(call, asker)
        return answer

    async def GetShare(self, request: pb.GetShareRequest, context: Context) -> pb.GetShareResponse:
        operation = Operation("GetShare", request.share)
        async with self._asking(operation, request.caller, context) as (asker, call):
            found = await self._store.find_share(asker.principal, request.share)
            share = _existing(found, "share", request.share)
            self._trail.note_answer(call, asker)
        return pb.GetShareResponse(share=share_to_proto(share), principal=asker.principal.name)

    async def ListSchemas(self, request: pb.ListSchemasRequest, context: Context) -> pb.ListSchemasResponse:
        operation = Operation("ListSchemas", request.share)
        async with self._asking(operation, request.caller, context) as (asker, call):
            page = self._pages.open(operation, request)
            answer = await self._listed(asker, page, self._list_schemas)
            self._trail.note_answer(call, asker)
        return answer

    async def ListTables(self, request: pb.ListTablesRequest, context: Context) -> pb.ListTablesResponse:
        operation = Operation("ListTables", request.share, request.schema)
        async with self._asking(operation, request.caller, context) as (asker, call):
            page = self._pages.open(operation, request)
            answer = await self._listed(asker, page, self._list_tables)
            self._trail.note_answer(call, asker)
        return answer

    async def ListAllTables(
        self, request: pb.ListAllTablesRequest, context: Context
    ) -> pb.ListAllTablesResponse:
        operation = Operation("ListAllTables", request.share)
        async with self._asking(operation, request.caller, context) as (asker, call):
            page = self._pages.open(operation, request, first=("", ""))
            answer = await self._listed(asker, page, self._list_all_tables)
            self._trail.note_answer(call, asker)
        return answer

    async def _listed(
        self, asker: Asker, page: Page, list_page: Callable[[Principal, Page], Awaitable[tuple[Answer, bool]]]
    ) -> Answer:
        """Return the page as it was answered before, while the content is the same."""
        key = ListKey(self._store.generation, asker.principal, page)
        if (known := self._lists.find(key)) is not None:
            return cast("Answer", known)
        answer, is_lasting = await list_page(asker.principal, page)
        # Content that came in between belongs to another key.
        if is_lasting and self._store.generation == key.generation:
            self._lists.keep(key, answer)
        return answer

    async def _list_shares(self, principal: Principal, page: Page) -> tuple[pb.ListSharesResponse, bool]:
        (after,) = page.after
        found = await self._store.list_shares(principal, after=after, limit=page.limit)
        shares, token = self._pages.close(page, found, _share_key, share_to_proto)
        return pb.ListSharesResponse(items=shares, next_page_token=token, principal=principal.name), True

    async def _list_schemas(self, principal: Principal, page: Page) -> tuple[pb.ListSchemasResponse, bool]:
        share, (after,) = page.operation.share, page.after
        found = await self._store.list_schemas(principal, share, after=after, limit=page.limit)
        existing = _existing(found, "share", share)
        schemas, token = self._pages.close(page, existing, _schema_key, schema_to_proto)
        return pb.ListSchemasResponse(items=schemas, next_page_token=token, principal=principal.name), True

    async def _list_tables(self, principal: Principal, page: Page) -> tuple[pb.ListTablesResponse, bool]:
        share, schema, (after,) = page.operation.share, page.operation.schema, page.after
        found = await self._store.list_tables(principal, share, schema, after=after, limit=page.limit)
        existing, is_lasting = await self._placed(principal, _existing(found, "schema", f"{share}.{schema}"))
        tables, token = self._pages.close(page, existing, _table_key, table_to_proto)
        answer = pb.ListTablesResponse(items=tables, next_page_token=token, principal=principal.name)
        return answer, is_lasting

    async def _list_all_tables(
        self, principal: Principal, page: Page
    ) -> tuple[pb.ListAllTablesResponse, bool]:
        share, (schema, table) = page.operation.share, page.after
        found = await self._store.list_all_tables(principal, share, after=(schema, table), limit=page.limit)
        existing, is_lasting = await self._placed(principal, _existing(found, "share", share))
        tables, token = self._pages.close(page, existing, _schema_and_table_key, table_to_proto)
        answer = pb.ListAllTablesResponse(items=tables, next_page_token=token, principal=principal.name)
        return answer, is_lasting

    async def _placed(self, principal: Principal, tables: Sequence[Table]) -> tuple[Sequence[Table], bool]:
        """Return tables with the places of views, and whether that holds as long as the content does."""
        if all(table.view is None for table in tables):
            return tables, True
        return await self._views.place(principal, tables), False

    @asynccontextmanager
    async def _asking(
        self, operation: Operation, caller: pb.Caller, context: Context
    ) -> AsyncIterator[tuple[Asker, Call]]:
        """Find out who is asking, and note what is refused."""
        peer = peer_of(context)
        call = Call(
            operation=operation,
            request_id=request_id_of(context),
            remote=context.peer(),
            started_at=self._clock(),
        )
        visitor, asker = Visitor(local=peer.local), None
        try:
            visitor = await self._callers.meet(peer)
            asker = await self._callers.identify(visitor, caller)
            yield asker, call
        except GatewayError as error:
            if asker is not None or not visitor.asks_as_edge(caller):
                self._trail.note_error(call, error, visitor, asker)
            raise


def _waiting(asker: Asker, resolved: Resolved) -> pb.ResolveResponse:
    """Return the answer about a query that is not ready: it grants nothing."""
    return pb.ResolveResponse(
        principal=asker.principal.name,
        table=table_to_proto(resolved.table),
        query=resolved.query,
        revoked_at_ms=_milliseconds(asker.principal.revoked_at or EPOCH),
    )


def _milliseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


def _existing(found: Found | None, kind: str, name: str) -> Found:
    if found is None:
        raise NotFound(f"{kind} {quoted(name)} does not exist, please contact your share provider")
    return found


def _share_key(share: Share) -> tuple[str, ...]:
    return (fold(share.name),)


def _schema_key(schema: Schema) -> tuple[str, ...]:
    return (fold(schema.name),)


def _table_key(table: Table) -> tuple[str, ...]:
    return (fold(table.name.table),)


def _schema_and_table_key(table: Table) -> tuple[str, ...]:
    return (fold(table.name.schema), fold(table.name.table))
