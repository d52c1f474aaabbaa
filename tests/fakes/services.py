"""Servicers that play the catalog, snapshot, presign and vending services over a small world."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.edge.settings import Services
from gateway.errors import InvalidArgument, NotFound, PermissionDenied, Unauthenticated
from gateway.rpc.local import LocalChannel
from gateway.rpc.metadata import Metadata
from gateway.v1 import catalog_pb2 as catalog
from gateway.v1 import presign_pb2 as presign
from gateway.v1 import vending_pb2 as vending
from gateway.v1.catalog_pb2_grpc import CatalogServicer, CatalogStub, add_CatalogServicer_to_server
from gateway.v1.presign_pb2_grpc import PresignServicer, PresignStub, add_PresignServicer_to_server
from gateway.v1.snapshot_pb2_grpc import SnapshotStub, add_SnapshotServicer_to_server
from gateway.v1.vending_pb2_grpc import VendingServicer, VendingStub, add_VendingServicer_to_server
from tests.fakes.metrics import FakeRpcMetrics
from tests.fakes.page import FILE_SIZE, fake_page
from tests.fakes.snapshot import FakeSnapshot
from tests.fakes.world import FakeRecipient, FakeTable, World, make_grant, open_grant

__all__ = [
    "FAR_MS",
    "FILE_SIZE",
    "FakeCatalog",
    "FakePresign",
    "FakeRecipient",
    "FakeServices",
    "FakeSnapshot",
    "FakeTable",
    "FakeVending",
    "World",
    "aws_credential",
    "expected_url",
    "fake_page",
    "fake_services",
]

ORIGIN = "https://files.test/"
QUERY = "sp=r&se=1&sig="
FAR_MS = 4_102_444_800_000


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
        if request.query.query_id:
            raise NotFound("the query does not exist or has expired; query the table again")
        return catalog.ResolveResponse(
            principal=recipient.name,
            table=table.to_proto(),
            grants=[make_grant(audience, table, recipient.name) for audience in request.audiences],
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
class FakePresign(PresignServicer):
    world: World
    expires_at_ms: int = FAR_MS
    error: Exception | None = None
    requests: list[presign.SignRequest] = field(default_factory=list)
    # Each page expires so much later than the one before it.
    step_ms: int = 0
    # Answer nobody, ever.
    hold: bool = False
    # Answer when so many have asked.
    together: asyncio.Barrier | None = None
    cancelled: int = 0

    async def Sign(self, request: presign.SignRequest, context: Any) -> presign.SignResponse:
        self.requests.append(request)
        if self.hold:
            await self._hold()
        if self.together is not None:
            await self.together.wait()
        if self.error is not None:
            raise self.error
        open_grant(self.world, request.grant, catalog.AUDIENCE_PRESIGN)
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
        table, _ = open_grant(self.world, request.grant, catalog.AUDIENCE_VENDING)
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
