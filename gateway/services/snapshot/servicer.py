"""The Snapshot service: grants in, versions, metadata and files out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final, NoReturn

from grpc import aio

from gateway.domain.grant import Grant
from gateway.domain.table import AccessMode
from gateway.errors import InvalidArgument, Unsupported
from gateway.ports import Clock, Storages
from gateway.rpc.grant import GrantVerifier
from gateway.services.snapshot.answer.head import render_head
from gateway.services.snapshot.answer.page import LineFormat, delta_file_id, parquet_file_id, render_pages
from gateway.services.snapshot.features import require_parquet
from gateway.services.snapshot.log.path import require_servable
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.snapshot import Snapshot
from gateway.services.snapshot.state.store import SnapshotStore
from gateway.services.snapshot.travel import TableView, find_version, find_view
from gateway.v1 import snapshot_pb2 as pb
from gateway.v1 import snapshot_pb2_grpc

Context = aio.ServicerContext[Any, Any]

# Ids without a choice are those of the response format, which is parquet.
_FILE_IDS: Final[Mapping[int, Callable[[bytes], str]]] = {
    pb.FILE_ID_HASH_UNSPECIFIED: parquet_file_id,
    pb.FILE_ID_HASH_PARQUET: parquet_file_id,
    pb.FILE_ID_HASH_DELTA: delta_file_id,
}


class SnapshotServicer(snapshot_pb2_grpc.SnapshotServicer):
    """Reads the logs of granted tables; in parquet format, latest or by version."""

    def __init__(self, *, storages: Storages, verifier: GrantVerifier, clock: Clock, memory: int) -> None:
        self._storages = storages
        self._verifier = verifier
        self._store = SnapshotStore(memory=memory, clock=clock)

    async def GetVersion(self, request: pb.GetVersionRequest, context: Context) -> pb.GetVersionResponse:
        grant = self._verifier.verify(request.grant)
        version = await find_version(self._store, self._log(grant), grant, request.starting_timestamp)
        return pb.GetVersionResponse(version=version)

    async def GetMetadata(self, request: pb.GetMetadataRequest, context: Context) -> pb.GetMetadataResponse:
        grant = self._verifier.verify(request.grant)
        view = await self._view(grant, request.capabilities, request.at)
        return pb.GetMetadataResponse(head=_head(view, grant))

    async def Query(self, request: pb.QueryRequest, context: Context) -> AsyncIterator[pb.QueryResponse]:
        grant = self._verifier.verify(request.grant)
        grant.require(AccessMode.URL)
        limit = request.limit_hint if request.HasField("limit_hint") else None
        if limit is not None and limit < 0:
            raise InvalidArgument(f"limitHint must be greater than or equal to 0, not {limit}")
        view = await self._view(grant, request.capabilities, request.at)
        _require_paths(view.snapshot, grant)
        pages = render_pages(view.snapshot.files.frame, _line_format(request, view), limit)
        yield pb.QueryResponse(head=_head(view, grant))
        # One page at a time and only when it is asked for: who stops reading stops the work.
        while (page := await asyncio.to_thread(next, pages, None)) is not None:
            yield pb.QueryResponse(page=page)

    def Changes(self, request: pb.ChangesRequest, context: Context) -> NoReturn:
        self._verifier.verify(request.grant)
        raise Unsupported("reading the changes of a table is not supported yet")

    async def _view(self, grant: Grant, capabilities: pb.ReaderCapabilities, at: pb.TableAt) -> TableView:
        formats = capabilities.response_formats
        if formats and pb.RESPONSE_FORMAT_PARQUET not in formats:
            raise Unsupported("responseformat=delta is not supported yet; ask for responseformat=parquet")
        view = await find_view(self._store, self._log(grant), grant, at)
        require_parquet(view.snapshot, str(grant.table))
        return view

    def _log(self, grant: Grant) -> TableLog:
        storage = self._storages.find(grant.location)
        if storage is None or storage.reader is None:
            raise Unsupported(f"table {grant.table} lies in no storage that this gateway can read")
        return TableLog(location=grant.location, reader=storage.reader)


def _head(view: TableView, grant: Grant) -> pb.TableHead:
    return pb.TableHead(
        version=view.snapshot.version,
        response_format=pb.RESPONSE_FORMAT_PARQUET,
        lines=render_head(view.snapshot, grant, with_version=view.is_historical),
    )


def _line_format(request: pb.QueryRequest, view: TableView) -> LineFormat:
    file_id = _FILE_IDS.get(request.file_id_hash)
    if file_id is None:
        raise InvalidArgument(f"there is no file id hash {request.file_id_hash}")
    return LineFormat(
        file_id=file_id,
        version=view.snapshot.version if view.is_historical else None,
        timestamp=view.timestamp,
    )


def _require_paths(snapshot: Snapshot, grant: Grant) -> None:
    """Raise before the first line of an answer, rather than in the middle of it."""
    encoded = snapshot.files.frame["encoded"]
    if encoded.has_nulls():
        require_servable(snapshot.files.frame["path"].filter(encoded.is_null())[0], grant)
