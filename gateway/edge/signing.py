"""Pages of files are signed: one call for each group of paths, under a grant that is renewed on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from grpc.aio import AioRpcError

from gateway.edge.exchange import Exchange, grant_error
from gateway.edge.ndjson import earliest, splice
from gateway.errors import Unavailable
from gateway.v1.catalog_pb2 import AUDIENCE_PRESIGN, ResolveResponse
from gateway.v1.presign_pb2 import SignRequest, SignResponse
from gateway.v1.snapshot_pb2 import FilePage

# A grant that ends sooner is renewed before it is used: the call itself takes time.
_MARGIN: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedPage:
    lines: bytes
    files: int
    file_bytes: int
    # None: nothing in the page was signed.
    expires_at_ms: int | None


class PageSigner:
    """Fills the holes of pages."""

    def __init__(self, exchange: Exchange, grant: PresignGrant) -> None:
        self._exchange = exchange
        self._grant = grant

    async def sign(self, page: FilePage) -> SignedPage:
        """Return the page as it is sent; one that names no file is sent as it is."""
        signed = await self._sign_groups(page) if page.groups else ()
        return SignedPage(
            lines=splice(page, signed),
            files=page.files,
            file_bytes=page.file_bytes,
            expires_at_ms=earliest(signed) if signed else None,
        )

    async def _sign_groups(self, page: FilePage) -> Sequence[SignResponse]:
        grant = await self._grant.current()
        requests = [
            SignRequest(grant=grant, location=group.location, paths=group.paths, is_segment=group.is_segment)
            for group in page.groups
        ]
        if len(requests) == 1:
            return [await self._sign(requests[0])]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._sign(request)) for request in requests]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        return [task.result() for task in tasks]

    async def _sign(self, request: SignRequest) -> SignResponse:
        edge = self._exchange.edge
        try:
            return await edge.services.presign.Sign(
                request,
                timeout=edge.settings.request_timeout.total_seconds(),
                metadata=self._exchange.metadata,
            )
        except AioRpcError as exc:
            raise grant_error(exc) from exc


class PresignGrant:
    """A grant to sign with, renewed while a long answer outlives it."""

    def __init__(self, exchange: Exchange, resolved: ResolveResponse, grant: str) -> None:
        self._exchange = exchange
        self._table = resolved.table
        self._grant = grant
        self._expires_at_ms = resolved.expires_at_ms

    async def current(self) -> str:
        if self._exchange.edge.ports.clock() + _MARGIN >= moment(self._expires_at_ms):
            await self._renew()
        return self._grant

    async def _renew(self) -> None:
        resolved = await self._exchange.resolve_again(AUDIENCE_PRESIGN)
        # The pages name files of the table as it was: elsewhere their paths would lead to other files.
        if (resolved.table.id, resolved.table.location, tuple(resolved.table.auxiliary_locations)) != (
            self._table.id,
            self._table.location,
            tuple(self._table.auxiliary_locations),
        ):
            raise Unavailable("the table was moved while it was being read; try again")
        self._grant = resolved.grants[0]
        self._expires_at_ms = resolved.expires_at_ms


def moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC)
