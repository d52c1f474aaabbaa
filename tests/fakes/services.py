"""Servicers that play the catalog, snapshot, presign and vending services over a small world."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.edge.settings import Services
from gateway.errors import (
    GatewayError,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    Unsupported,
)
from gateway.rpc.local import LocalChannel
from gateway.rpc.metadata import Metadata
from gateway.v1 import catalog_pb2 as catalog
from gateway.v1 import presign_pb2 as presign
from gateway.v1 import snapshot_pb2 as snapshot
from gateway.v1 import vending_pb2 as vending
from gateway.v1.catalog_pb2_grpc import CatalogServicer, CatalogStub, add_CatalogServicer_to_server
from gateway.v1.presign_pb2_grpc import PresignServicer, PresignStub, add_PresignServicer_to_server
from gateway.v1.snapshot_pb2_grpc import SnapshotServicer, SnapshotStub, add_SnapshotServicer_to_server
from gateway.v1.vending_pb2_grpc import VendingServicer, VendingStub, add_VendingServicer_to_server
from tests.fakes.metrics import FakeRpcMetrics

ORIGIN = "https://files.test/"
QUERY = "sp=r&se=1&sig="
FILE_SIZE = 573
FAR_MS = 4_102_444_800_000

_MODES = {"url": catalog.ACCESS_MODE_URL, "dir": catalog.ACCESS_MODE_DIR}
_SCHEMA = json.dumps(
    {"type": "struct", "fields": [{"name": "n", "type": "long", "nullable": True, "metadata": {}}]}
)


@dataclass(frozen=True, kw_only=True)
class FakeTable:
    share: str
    schema: str
    name: str
    files: int = 2
    version: int = 7
    access_modes: tuple[str, ...] = ("url",)
    history_shared: bool = False
    auxiliary_locations: tuple[str, ...] = ()
    r2_credentials: bool = False

    @property
    def id(self) -> str:
        return f"id-{self.name}"

    @property
    def location(self) -> str:
        return f"s3://bucket/{self.name}"

    @property
    def key(self) -> tuple[str, str, str]:
        return self.share.lower(), self.schema.lower(), self.name.lower()

    def to_proto(self) -> catalog.Table:
        return catalog.Table(
            name=self.name,
            schema=self.schema,
            share=self.share,
            share_id=f"id-{self.share}",
            id=self.id,
            location=self.location,
            auxiliary_locations=self.auxiliary_locations,
            access_modes=[_MODES[mode] for mode in self.access_modes],
            r2_credentials=self.r2_credentials,
        )


@dataclass(frozen=True, kw_only=True)
class FakeRecipient:
    name: str
    token: str
    shares: tuple[str, ...]
    disabled: bool = False
    revoked_at_ms: int = 0


@dataclass(kw_only=True)
class World:
    """What there is, and who may see it."""

    shares: Sequence[catalog.Share]
    tables: Sequence[FakeTable]
    recipients: Sequence[FakeRecipient]
    empty_schemas: Sequence[tuple[str, str]] = ()
    files_per_page: int = 3

    def table(self, share: str, schema: str, name: str) -> FakeTable | None:
        key = share.lower(), schema.lower(), name.lower()
        return next((table for table in self.tables if table.key == key), None)


@dataclass
class FakeCatalog(CatalogServicer):
    world: World
    expires_at_ms: Callable[[], int] = lambda: FAR_MS
    # Raised instead of an answer.
    error: Exception | None = None
    requests: list[Any] = field(default_factory=list)
    metadata: list[Metadata] = field(default_factory=list)

    async def Resolve(self, request: catalog.ResolveRequest, context: Any) -> catalog.ResolveResponse:
        recipient = self._meet(request, context)
        table = self.world.table(request.share, request.schema, request.table)
        name = f"{request.share}.{request.schema}.{request.table}"
        if table is None or table.share not in recipient.shares:
            raise NotFound(f"table {name!r} does not exist, please contact your share provider")
        return catalog.ResolveResponse(
            principal=recipient.name,
            table=table.to_proto(),
            grants=[f"{audience}/{'/'.join(table.key)}" for audience in request.audiences],
            expires_at_ms=self.expires_at_ms(),
            revoked_at_ms=recipient.revoked_at_ms,
        )

    async def ListShares(
        self, request: catalog.ListSharesRequest, context: Any
    ) -> catalog.ListSharesResponse:
        recipient = self._meet(request, context)
        shares = [share for share in self.world.shares if share.name in recipient.shares]
        items, token = _page(shares, request, "shares")
        return catalog.ListSharesResponse(items=items, next_page_token=token, principal=recipient.name)

    async def GetShare(self, request: catalog.GetShareRequest, context: Any) -> catalog.GetShareResponse:
        recipient = self._meet(request, context)
        return catalog.GetShareResponse(share=self._share(recipient, request.share), principal=recipient.name)

    async def ListSchemas(
        self, request: catalog.ListSchemasRequest, context: Any
    ) -> catalog.ListSchemasResponse:
        recipient = self._meet(request, context)
        share = self._share(recipient, request.share).name
        found = [catalog.Schema(name=name, share=share) for name in self._schemas(share)]
        items, token = _page(found, request, f"schemas/{share}")
        return catalog.ListSchemasResponse(items=items, next_page_token=token, principal=recipient.name)

    async def ListTables(
        self, request: catalog.ListTablesRequest, context: Any
    ) -> catalog.ListTablesResponse:
        recipient = self._meet(request, context)
        share = self._share(recipient, request.share).name
        schemas = {name.lower(): name for name in self._schemas(share)}
        if request.schema.lower() not in schemas:
            name = f"{request.share}.{request.schema}"
            raise NotFound(f"schema {name!r} does not exist, please contact your share provider")
        schema = schemas[request.schema.lower()]
        found = [table for table in self._tables(share) if table.schema == schema]
        items, token = _page(found, request, f"tables/{share}/{schema}")
        return catalog.ListTablesResponse(items=items, next_page_token=token, principal=recipient.name)

    async def ListAllTables(
        self, request: catalog.ListAllTablesRequest, context: Any
    ) -> catalog.ListAllTablesResponse:
        recipient = self._meet(request, context)
        share = self._share(recipient, request.share).name
        items, token = _page(self._tables(share), request, f"all/{share}")
        return catalog.ListAllTablesResponse(items=items, next_page_token=token, principal=recipient.name)

    def _meet(self, request: Any, context: Any) -> FakeRecipient:
        self.requests.append(request)
        self.metadata.append(context.invocation_metadata())
        if self.error is not None:
            raise self.error
        for recipient in self.world.recipients:
            if hashlib.sha256(recipient.token.encode()).digest() == request.caller.token_sha256:
                if recipient.disabled:
                    raise PermissionDenied(f"recipient {recipient.name!r} is disabled")
                return recipient
        raise Unauthenticated("the bearer token is missing, unknown or expired")

    def _share(self, recipient: FakeRecipient, name: str) -> catalog.Share:
        for share in self.world.shares:
            if share.name.lower() == name.lower() and share.name in recipient.shares:
                return share
        raise NotFound(f"share {name!r} does not exist, please contact your share provider")

    def _schemas(self, share: str) -> list[str]:
        named = {table.schema for table in self.world.tables if table.share == share}
        return sorted(named | {schema for name, schema in self.world.empty_schemas if name == share})

    def _tables(self, share: str) -> list[catalog.Table]:
        tables = sorted((table for table in self.world.tables if table.share == share), key=lambda t: t.key)
        return [table.to_proto() for table in tables]


@dataclass
class FakeSnapshot(SnapshotServicer):
    """After ``fail_after`` pages it raises ``error``; before each it waits for ``gate``, if there is one."""

    world: World
    error: Exception | None = None
    fail_after: int | None = None
    gate: asyncio.Semaphore | None = None
    requests: list[Any] = field(default_factory=list)
    metadata: list[Metadata] = field(default_factory=list)
    timeouts: list[float | None] = field(default_factory=list)
    pages: int = 0
    closed: int = 0

    async def GetVersion(
        self, request: snapshot.GetVersionRequest, context: Any
    ) -> snapshot.GetVersionResponse:
        table = self._open(request, context)
        _check_timestamp(request.starting_timestamp, table)
        return snapshot.GetVersionResponse(version=table.version)

    async def GetMetadata(
        self, request: snapshot.GetMetadataRequest, context: Any
    ) -> snapshot.GetMetadataResponse:
        table = self._open(request, context)
        return snapshot.GetMetadataResponse(head=_head(table, request.at))

    async def Query(
        self, request: snapshot.QueryRequest, context: Any
    ) -> AsyncIterator[snapshot.QueryResponse]:
        try:
            table = self._open(request, context)
            yield snapshot.QueryResponse(head=_head(table, request.at))
            files = (
                table.files if not request.HasField("limit_hint") else min(table.files, request.limit_hint)
            )
            for page in _pages(table, files, self.world.files_per_page, request.file_id_hash):
                if self.gate is not None:
                    await self.gate.acquire()
                if self.fail_after == self.pages:
                    raise self.error or RuntimeError("a fault that nobody foresaw")
                self.pages += 1
                yield snapshot.QueryResponse(page=page)
        finally:
            self.closed += 1

    async def Changes(
        self, request: snapshot.ChangesRequest, context: Any
    ) -> AsyncIterator[snapshot.ChangesResponse]:
        raise Unsupported("these tables have no changes")
        yield

    def _open(self, request: Any, context: Any) -> FakeTable:
        self.requests.append(request)
        self.metadata.append(context.invocation_metadata())
        self.timeouts.append(context.time_remaining())
        if self.error is not None and self.fail_after is None:
            raise self.error
        return _granted(self.world, request.grant, catalog.AUDIENCE_SNAPSHOT)


@dataclass
class FakePresign(PresignServicer):
    world: World
    expires_at_ms: int = FAR_MS
    error: Exception | None = None
    requests: list[presign.SignRequest] = field(default_factory=list)
    # Each page expires so much later than the one before it.
    step_ms: int = 0
    # Answer nobody, ever.
    hold: bool = False
    cancelled: int = 0

    async def Sign(self, request: presign.SignRequest, context: Any) -> presign.SignResponse:
        self.requests.append(request)
        if self.hold:
            await self._hold()
        if self.error is not None:
            raise self.error
        _granted(self.world, request.grant, catalog.AUDIENCE_PRESIGN)
        signatures = [hashlib.md5(path).hexdigest().encode() for path in request.paths.split(b"\n")]
        return presign.SignResponse(
            origin=ORIGIN,
            query=QUERY,
            signatures=b"\n".join(signatures),
            expires_at_ms=self.expires_at_ms + self.step_ms * (len(self.requests) - 1),
        )

    async def _hold(self) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


def aws_credential() -> vending.IssueResponse:
    return vending.IssueResponse(
        aws=vending.AwsTempCredentials(
            access_key_id="ASIAFAKE",
            secret_access_key="secret-of-fake",
            session_token="session-of-fake",
            region="eu-west-1",
            endpoint="https://s3.test",
        ),
        expires_at_ms=FAR_MS,
        credential_id="ASIAFAKE",
    )


@dataclass
class FakeVending(VendingServicer):
    """Answers with ``credential`` for the location that was asked for."""

    world: World
    credential: vending.IssueResponse = field(default_factory=aws_credential)
    error: Exception | None = None
    requests: list[vending.IssueRequest] = field(default_factory=list)
    # Done while a credential is being made.
    meanwhile: Callable[[], None] = lambda: None

    async def Issue(self, request: vending.IssueRequest, context: Any) -> vending.IssueResponse:
        self.requests.append(request)
        table = _granted(self.world, request.grant, catalog.AUDIENCE_VENDING)
        locations = (table.location, *table.auxiliary_locations)
        self.meanwhile()
        if self.error is not None:
            raise self.error
        answer = vending.IssueResponse(location=locations[request.location])
        answer.MergeFrom(self.credential)
        return answer


@dataclass(kw_only=True)
class FakeServices:
    """The servicers, and the stubs that lead to them."""

    catalog: FakeCatalog
    snapshot: FakeSnapshot
    presign: FakePresign
    vending: FakeVending
    stubs: Services


def fake_services(world: World) -> FakeServices:
    channel = LocalChannel(FakeRpcMetrics())
    fakes = FakeCatalog(world), FakeSnapshot(world), FakePresign(world), FakeVending(world)
    add_CatalogServicer_to_server(fakes[0], channel.as_server())
    add_SnapshotServicer_to_server(fakes[1], channel.as_server())
    add_PresignServicer_to_server(fakes[2], channel.as_server())
    add_VendingServicer_to_server(fakes[3], channel.as_server())
    through = channel.as_channel()
    stubs = Services(
        catalog=CatalogStub(through),
        snapshot=SnapshotStub(through),
        presign=PresignStub(through),
        vending=VendingStub(through),
    )
    return FakeServices(catalog=fakes[0], snapshot=fakes[1], presign=fakes[2], vending=fakes[3], stubs=stubs)


def expected_url(path: str) -> str:
    return f"{ORIGIN}{path}?{QUERY}{hashlib.md5(path.encode()).hexdigest()}"


def _granted(world: World, grant: str, audience: catalog.Audience.ValueType) -> FakeTable:
    presented, _, key = grant.partition("/")
    table = world.table(*key.split("/")) if presented == str(audience) else None
    if table is None:
        raise Unauthenticated("the grant is not for this service")
    return table


def _page(found: Sequence[Any], request: Any, name: str) -> tuple[Sequence[Any], str]:
    """Return the items of a page and the token of the next: the list's name and the offset, with a check."""
    start = 0
    if request.page_token:
        body, _, check = _decoded(request.page_token).rpartition("|")
        if check != _check(body) or not body.startswith(f"{name}|"):
            raise InvalidArgument("the page token does not belong to this list")
        start = int(body.rpartition("|")[2])
    end = start + (request.max_results if request.HasField("max_results") else 500)
    if end >= len(found):
        return found[start:], ""
    body = f"{name}|{end}"
    token = base64.urlsafe_b64encode(f"{body}|{_check(body)}".encode()).rstrip(b"=").decode()
    return found[start:end], token


def _decoded(token: str) -> str:
    try:
        return base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode()
    except ValueError as exc:
        raise InvalidArgument("the page token does not belong to this list") from exc


def _check(body: str) -> str:
    return hashlib.sha256(f"secret{body}".encode()).hexdigest()[:16]


def _check_timestamp(text: str, table: FakeTable) -> None:
    if text and not text.endswith("Z"):
        raise InvalidArgument(f"{text!r} is not a timestamp such as 2022-01-01T00:00:00Z")
    if text and not table.history_shared:
        raise _history_error()


def _history_error() -> GatewayError:
    return InvalidArgument("Reading table by version or timestamp is not supported on this table")


def _head(table: FakeTable, at: snapshot.TableAt) -> snapshot.TableHead:
    travel = at.WhichOneof("at")
    if travel and not table.history_shared:
        raise _history_error()
    version = at.version if travel == "version" else table.version
    metadata: dict[str, Any] = {
        "id": f"delta-{table.id}",
        "location": table.location,
        "accessModes": list(table.access_modes),
        "format": {"provider": "parquet"},
        "schemaString": _SCHEMA,
        "partitionColumns": [],
        "size": table.files * FILE_SIZE,
        "numFiles": table.files,
    }
    if travel:
        metadata["version"] = version
    if table.auxiliary_locations:
        metadata["auxiliaryLocations"] = list(table.auxiliary_locations)
    lines = ({"protocol": {"minReaderVersion": 1}}, {"metaData": metadata})
    return snapshot.TableHead(
        version=version,
        response_format=snapshot.RESPONSE_FORMAT_PARQUET,
        lines="".join(f"{json.dumps(value)}\n" for value in lines).encode(),
    )


def _pages(
    table: FakeTable, files: int, size: int, file_id_hash: snapshot.FileIdHash.ValueType
) -> Iterable[snapshot.FilePage]:
    digest = hashlib.sha256 if file_id_hash == snapshot.FILE_ID_HASH_DELTA else hashlib.md5
    for start in range(0, files, size):
        paths = [f"part-{number:05}.parquet" for number in range(start, min(start + size, files))]
        yield fake_page(paths, lambda path: digest(path.encode()).hexdigest())


def fake_page(paths: Sequence[str], file_id: Callable[[str], str]) -> snapshot.FilePage:
    """Return a page as the snapshot service renders it, with a URL and an expiration in each line."""
    lines, holes = b"", []
    for path in paths:
        lines += b'{"file":{"url":"'
        holes.append(len(lines))
        body = {"id": file_id(path), "partitionValues": {}, "size": FILE_SIZE, "stats": '{"numRecords":1}'}
        lines += f'",{json.dumps(body)[1:-1]},"expirationTimestamp":'.encode()
        holes.append(len(lines))
        lines += b"}}\n"
    return snapshot.FilePage(
        lines=lines,
        holes=holes,
        hole_kinds=bytes([snapshot.HOLE_URL, snapshot.HOLE_EXPIRATION]) * len(paths),
        paths="\n".join(paths).encode(),
        files=len(paths),
        file_bytes=len(paths) * FILE_SIZE,
    )
