"""The Snapshot service: grants in, versions, metadata, files and changes out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from grpc import aio

from gateway.domain.grant import Grant
from gateway.domain.table import AccessMode
from gateway.errors import Unsupported
from gateway.ports import Storages
from gateway.rpc.grant import GrantVerifier
from gateway.services.snapshot.answer.head import render_head
from gateway.services.snapshot.answer.negotiation import choose_format
from gateway.services.snapshot.change_query import ChangeQueries
from gateway.services.snapshot.fault_log import FaultLog
from gateway.services.snapshot.file_query import FileQueries
from gateway.services.snapshot.large_schema import read_schema
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.store import SnapshotStore
from gateway.services.snapshot.travel import TableView, find_version, find_view
from gateway.v1 import snapshot_pb2 as pb
from gateway.v1 import snapshot_pb2_grpc

Context = aio.ServicerContext[Any, Any]


class SnapshotServicer(snapshot_pb2_grpc.SnapshotServicer):
    """Reads the logs of granted tables."""

    def __init__(
        self,
        *,
        storages: Storages,
        verifier: GrantVerifier,
        store: SnapshotStore,
        files: FileQueries,
        changes: ChangeQueries,
        faults: FaultLog,
    ) -> None:
        self._storages = storages
        self._verifier = verifier
        self._store = store
        self._files = files
        self._changes = changes
        self._faults = faults

    async def GetVersion(self, request: pb.GetVersionRequest, context: Context) -> pb.GetVersionResponse:
        grant = self._verifier.verify(request.grant)
        with self._faults.naming(grant):
            version = await find_version(self._store, self._log(grant), grant, request.starting_timestamp)
        return pb.GetVersionResponse(version=version)

    async def GetMetadata(self, request: pb.GetMetadataRequest, context: Context) -> pb.GetMetadataResponse:
        grant = self._verifier.verify(request.grant)
        with self._faults.naming(grant):
            view = await find_view(self._store, self._log(grant), grant, request.at)
            head = await read_schema(
                view.snapshot.metadata,
                lambda: _head(view, grant, request.capabilities),
                view.snapshot.protocol,
            )
        return pb.GetMetadataResponse(head=head)

    async def Query(self, request: pb.QueryRequest, context: Context) -> AsyncIterator[pb.QueryResponse]:
        grant = self._require_url(request.grant)
        log = self._log(grant)
        # Closed here and not by the garbage collector: who stops reading stops the work.
        with self._faults.naming(grant):
            if request.HasField("starting_version"):
                async with aclosing(self._changes.answer_stream(log, grant, request)) as parts:
                    async for part in parts:
                        yield pb.QueryResponse(**_named(part))
            else:
                async with aclosing(self._files.answer(log, grant, request)) as responses:
                    async for response in responses:
                        yield response

    async def Changes(
        self, request: pb.ChangesRequest, context: Context
    ) -> AsyncIterator[pb.ChangesResponse]:
        grant = self._require_url(request.grant)
        with self._faults.naming(grant):
            async with aclosing(self._changes.answer_feed(self._log(grant), grant, request)) as parts:
                async for part in parts:
                    yield pb.ChangesResponse(**_named(part))

    def _require_url(self, token: str) -> Grant:
        grant = self._verifier.verify(token)
        grant.require(AccessMode.URL)
        return grant

    def _log(self, grant: Grant) -> TableLog:
        storage = self._storages.find(grant.location)
        if storage is None or storage.reader is None:
            raise Unsupported(f"table {grant.table} lies in no storage that this gateway can read")
        return TableLog(location=grant.location, reader=storage.reader, parsing=self._store.parsing)


def _head(view: TableView, grant: Grant, capabilities: pb.ReaderCapabilities) -> pb.TableHead:
    chosen = choose_format(view.snapshot, capabilities, grant, discovery=True)
    lines = render_head(
        view.snapshot,
        grant,
        chosen,
        with_version=view.is_historical,
        declared=capabilities.reader_features,
    )
    return pb.TableHead(version=view.snapshot.version, response_format=chosen, lines=lines)


def _named(part: pb.TableHead | pb.FilePage | pb.AnswerEnd) -> dict[str, Any]:
    """Return a part by the field that it has in the answers of both calls."""
    if isinstance(part, pb.TableHead):
        return {"head": part}
    return {"page": part} if isinstance(part, pb.FilePage) else {"end": part}
