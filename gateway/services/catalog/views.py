"""Views in the catalog's answers: tables whose location is where they were last made."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from gateway.domain.job import JobState
from gateway.domain.name import TableName
from gateway.domain.principal import Principal
from gateway.domain.showing import showing_of
from gateway.domain.table import Table
from gateway.domain.view import Materialisation, Showing
from gateway.errors import GatewayError, NotFound
from gateway.services.catalog.queries import Queries, Query
from gateway.services.catalog.showings import Showings, unprepared
from gateway.v1 import catalog_pb2 as pb

# A list does not wait longer for what it can do without.
_LISTING: Final = timedelta(seconds=2)
_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A table as it may be granted now, and what became of a query that waits for it."""

    table: Table
    query: pb.QueryStatus | None = None

    @property
    def is_ready(self) -> bool:
        return self.query is None or self.query.state == pb.QUERY_STATE_READY


class Views:
    """Finds out where a view is, and has it made where it is nowhere yet, or too old."""

    def __init__(self, showings: Showings, queries: Queries) -> None:
        self._showings = showings
        self._queries = queries
        # Of lists alone: who asks for one view does not wait behind a list of a thousand.
        self._peeks = asyncio.Semaphore(_AT_ONCE)

    async def resolve(self, principal: Principal, table: Table, asked: pb.AsyncQuery | None) -> Resolved:
        if asked is not None and asked.query_id:
            return await self._follow(principal, table, asked.query_id)
        if table.view is None:
            return Resolved(table=table)
        showing = showing_of(table, principal)
        if asked is None:
            return Resolved(table=_placed(table, await self._showings.find_or_tell(showing)))
        return await self._begin(principal, table, showing, asked)

    async def place(self, principal: Principal, tables: Sequence[Table]) -> Sequence[Table]:
        """Return tables as a list shows them: views with their places, as far as those are soon found."""
        places: dict[TableName, Materialisation] = {}
        views = [table for table in tables if table.view is not None]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LISTING.total_seconds()):
                await asyncio.gather(*(self._peek(principal, table, places) for table in views))
        return [_placed(table, places[table.name]) if table.name in places else table for table in tables]

    async def _peek(
        self, principal: Principal, table: Table, places: dict[TableName, Materialisation]
    ) -> None:
        """Add the place of a view, if there is one; what was added stays when the time is over."""
        with contextlib.suppress(GatewayError):
            async with self._peeks:
                found = await self._showings.find(showing_of(table, principal))
            if found is not None:
                places[table.name] = found

    async def _begin(
        self, principal: Principal, table: Table, showing: Showing, asked: pb.AsyncQuery
    ) -> Resolved:
        found = await self._showings.find(showing)
        if found is not None and self._showings.is_fresh(showing, found):
            return Resolved(table=_placed(table, found))
        job = await self._showings.request(showing)
        if found is None and job.state is JobState.FAILED:
            # Nothing to wait for: as whoever cannot wait is told.
            raise unprepared(showing, job)
        query = await self._queries.begin(
            principal.name,
            table.name,
            asked.parameters,
            asked.idempotency_key,
            self._showings.needed(showing),
        )
        return _waiting(table, query)

    async def _follow(self, principal: Principal, table: Table, query_id: str) -> Resolved:
        query = await self._queries.find(principal.name, table.name, query_id)
        if table.view is None:
            # It was a view when the query was begun.
            raise NotFound("the query does not exist or has expired; query the table again")
        showing = showing_of(table, principal)
        found = await self._showings.find(showing)
        if found is not None and self._showings.is_since(found, query.needed):
            status = pb.QueryStatus(
                query_id=query.id, state=pb.QUERY_STATE_READY, parameters=query.parameters
            )
            return Resolved(table=_placed(table, found), query=status)
        job = await self._showings.request(showing)
        if job.state is JobState.FAILED:
            error = unprepared(showing, job)
            status = pb.QueryStatus(query_id=query.id, state=pb.QUERY_STATE_FAILED, message=error.message)
            return Resolved(table=table, query=status)
        return _waiting(table, query)


def _placed(table: Table, found: Materialisation) -> Table:
    return replace(table, location=found.location)


def _waiting(table: Table, query: Query) -> Resolved:
    return Resolved(table=table, query=pb.QueryStatus(query_id=query.id, state=pb.QUERY_STATE_PENDING))
