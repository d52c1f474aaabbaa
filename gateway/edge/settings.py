"""What the edge is built from: its settings, the services behind it, and its ports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, Protocol

from aiohttp import web

from gateway.domain.rate import Rate
from gateway.ports import AuditLog, Clock, HttpMetrics, RateBuckets

if TYPE_CHECKING:
    from gateway.v1.catalog_pb2_grpc import CatalogAsyncStub
    from gateway.v1.presign_pb2_grpc import PresignAsyncStub
    from gateway.v1.snapshot_pb2_grpc import SnapshotAsyncStub
    from gateway.v1.vending_pb2_grpc import VendingAsyncStub

Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeSettings:
    # What stands before ``/shares``; empty for the root.
    prefix: str = "/delta-sharing"
    # Where recipients reach the prefix; empty: wherever they reached it.
    public_url: str = ""
    # The time that one request may take before its answer begins.
    request_timeout: timedelta = timedelta(seconds=30)
    # The time that a whole streamed answer may take.
    stream_timeout: timedelta = timedelta(hours=1)
    body_limit: int = 1024 * 1024
    body_timeout: timedelta = timedelta(seconds=30)
    # Whether answers are compressed for clients that can read it.
    compresses: bool = True
    # Whether credentials come with their store's region and endpoint.
    region_and_endpoint: bool = True
    # A credential that took longer to issue is handed out only if it would be granted once more.
    grant_again_after: timedelta = timedelta(milliseconds=100)
    # The rate of a recipient, asked at each request, so that a reload takes effect.
    rate_of: Callable[[str], Rate]
    trusted_proxies: tuple[Network, ...] = ()
    # Everybody is served, whatever they present.
    anonymous: bool = False

    @property
    def base_path(self) -> str:
        """Return the prefix with a leading and without a trailing slash, or nothing."""
        path = self.prefix.strip("/")
        return f"/{path}" if path else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Generated stubs, over whatever channels."""

    catalog: CatalogAsyncStub
    snapshot: SnapshotAsyncStub
    presign: PresignAsyncStub
    vending: VendingAsyncStub


class Files(Protocol):
    """Serves files by URLs that the gateway signed itself."""

    async def handle(self, request: web.Request) -> web.StreamResponse: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgePorts:
    audit: AuditLog
    metrics: HttpMetrics
    # None: no local storage, so no file is served.
    files: Files | None = None
    # None: buckets of this process alone.
    buckets: RateBuckets | None = None
    clock: Clock
