"""Queries that wait for a view: kept where all replicas see them, for the one who asked."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from gateway.domain.key import Keys
from gateway.domain.name import TableName
from gateway.domain.sealed_text import pack
from gateway.domain.window import EPOCH
from gateway.errors import GatewayError, InvalidArgument, NotFound, Unavailable
from gateway.ports import Clock, StateEntry, StateStore

LIFE: Final = timedelta(hours=24)
# For so long who asks the same again without a key of its own is given the same query.
JOINED: Final = timedelta(seconds=10)
# How long after a sweep that was not at the end yet the next goes on.
SWEEP_SOON: Final = timedelta(minutes=1)
MAX_PARAMETERS: Final = 256 * 1024
MAX_IDEMPOTENCY_KEY: Final = 255

_PREFIX: Final = "queries/"
_ID: Final = re.compile(r"[A-Za-z0-9_-]{32,64}")
_FORMAT: Final = 1
_SWEEP_EVERY: Final = timedelta(hours=1)
_MOST_SWEPT: Final = 10_000
_PAGE: Final = 1000
_ATTEMPTS: Final = 5

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What was asked for, by whom, and of when the answer must be at the earliest."""

    id: str
    principal: str
    table: tuple[str, str, str]
    parameters: bytes = field(repr=False)
    needed: datetime
    expires_at: datetime


class Queries:
    """Keeps queries for a day. Nobody but the one who asked can tell that there is one."""

    def __init__(self, state: StateStore, keys: Keys, clock: Clock) -> None:
        self._state = state
        self._keys = keys
        self._clock = clock
        self._sweep_at: datetime | None = None
        # The key that the last sweep came to; empty where it came to the end.
        self._swept = ""
        self._sweeping: asyncio.Task[None] | None = None

    async def begin(
        self, principal: str, table: TableName, parameters: bytes, idempotency_key: str, needed: datetime
    ) -> Query:
        """Keep a query; the same key finds the one that it was kept with."""
        if len(parameters) > MAX_PARAMETERS:
            raise InvalidArgument(f"an asynchronous query has at most {MAX_PARAMETERS:,} bytes of parameters")
        if len(idempotency_key) > MAX_IDEMPOTENCY_KEY:
            raise InvalidArgument(f"idempotencyKey has at most {MAX_IDEMPOTENCY_KEY} characters")
        query = Query(
            id=self._new_id(principal, table, parameters, idempotency_key),
            principal=principal,
            table=table.key,
            parameters=parameters,
            needed=needed,
            expires_at=self._clock() + LIFE,
        )
        self._sweep_aside()
        if await self._put(query, None):
            return query
        return await self._join(query)

    async def find(self, principal: str, table: TableName, query_id: str) -> Query:
        """Return a query; for what is another's, another table's or gone, as for what never was."""
        query = None
        if _ID.fullmatch(query_id):
            entry = await self._state.get(_key(query_id))
            query = None if entry is None else _decode(query_id, entry.content)
        if query is None or not self._is_for(query, principal, table):
            raise NotFound("the query does not exist or has expired; query the table again")
        return query

    def _is_for(self, query: Query, principal: str, table: TableName) -> bool:
        return (query.principal, query.table) == (principal, table.key) and self._clock() < query.expires_at

    async def _join(self, query: Query) -> Query:
        """Return what is kept under the same key already, or take the place of what has expired."""
        for _ in range(_ATTEMPTS):
            entry = await self._state.get(_key(query.id))
            kept = None if entry is None else _decode(query.id, entry.content)
            if kept is not None and self._clock() < kept.expires_at:
                return _compared(kept, query)
            if await self._put(query, entry):
                return query
        raise Unavailable("the query could not be kept; try again")

    async def _put(self, query: Query, entry: StateEntry | None) -> bool:
        """Keep a query in the place of what was seen there; tell whether nobody came in between."""
        if entry is None:
            return await self._state.create(_key(query.id), _encode(query)) is not None
        return await self._state.replace(_key(query.id), _encode(query), entry.tag) is not None

    def _new_id(self, principal: str, table: TableName, parameters: bytes, idempotency_key: str) -> str:
        """Return an id that nobody can guess, though all replicas find the same one."""
        if idempotency_key:
            asked = pack("query", principal, *table.key, idempotency_key)
        else:
            # A client that does not wait but asks anew must not leave a query each time.
            window = (self._clock() - EPOCH) // JOINED
            digest = hashlib.sha256(parameters).hexdigest()
            asked = pack("query without key", principal, *table.key, str(window), digest)
        return base64.urlsafe_b64encode(self._keys.current.mac(asked)[:24]).decode()

    def _sweep_aside(self) -> None:
        now = self._clock()
        if self._sweep_at is not None and now < self._sweep_at:
            return
        if self._sweeping is None or self._sweeping.done():
            self._sweep_at = now + SWEEP_SOON
            self._sweeping = asyncio.create_task(self._sweep(now))

    async def _sweep(self, now: datetime) -> None:
        """Delete what has expired: nobody can ask for it any more."""
        try:
            for _ in range(_MOST_SWEPT // _PAGE):
                found = await self._state.list(_PREFIX, after=self._swept, limit=_PAGE)
                for entry in found:
                    if entry.modified_at + LIFE + _SWEEP_EVERY < now:
                        await self._state.delete(entry.key)
                if len(found) < _PAGE:
                    self._swept, self._sweep_at = "", now + _SWEEP_EVERY
                    return
                self._swept = found[-1].key
        except GatewayError as exc:
            log.warning("expired queries are not deleted yet: %s", exc.message)


def _compared(kept: Query, query: Query) -> Query:
    if kept.parameters != query.parameters:
        raise InvalidArgument("idempotencyKey was used for a query with other parameters; use another key")
    return kept


def _key(query_id: str) -> str:
    return f"{_PREFIX}{query_id}.json"


def _encode(query: Query) -> bytes:
    value = {
        "format": _FORMAT,
        "principal": query.principal,
        "table": list(query.table),
        "parameters": base64.b64encode(query.parameters).decode(),
        "needed": query.needed.isoformat(),
        "expiresAt": query.expires_at.isoformat(),
    }
    return json.dumps(value).encode()


def _decode(query_id: str, content: bytes) -> Query | None:
    try:
        value: Mapping[str, Any] = json.loads(content)
        share, schema, table = value["table"]
        return Query(
            id=query_id,
            principal=value["principal"],
            table=(share, schema, table),
            parameters=base64.b64decode(value["parameters"], validate=True),
            needed=datetime.fromisoformat(value["needed"]).astimezone(UTC),
            expires_at=datetime.fromisoformat(value["expiresAt"]).astimezone(UTC),
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        log.error("a kept query cannot be read")  # noqa: TRY400 -- its content is a recipient's own
        return None
