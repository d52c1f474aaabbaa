"""Builds the REST edge of a process."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from grpc import aio

from gateway.adapters.certificate import RenewableContext, certificate_files
from gateway.adapters.keyring import Keyring
from gateway.adapters.metrics import PrometheusMetrics
from gateway.adapters.storage_plan import LocalRoots
from gateway.bootstrap.reload import Rates
from gateway.bootstrap.renewal import Renewals, signatures
from gateway.config.schema import Config, ServiceName, SslConfig, public_url
from gateway.domain.key import Purpose
from gateway.edge.app import build
from gateway.edge.handlers.files import FilesHandler
from gateway.edge.server import Limits, Listen, close_connections, serve
from gateway.edge.settings import EdgePorts, EdgeSettings, Services
from gateway.ports import AuditLog, Clock, RateBuckets
from gateway.v1.catalog_pb2_grpc import CatalogStub
from gateway.v1.presign_pb2_grpc import PresignStub
from gateway.v1.snapshot_pb2_grpc import SnapshotStub
from gateway.v1.vending_pb2_grpc import VendingStub


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeParts:
    """What the edge is made of."""

    config: Config
    keyring: Keyring
    channels: Mapping[ServiceName, aio.Channel]
    roots: LocalRoots
    rates: Rates
    buckets: RateBuckets | None
    audit: AuditLog
    metrics: PrometheusMetrics
    renewals: Renewals
    clock: Clock
    # Whether the process was asked to stop.
    is_leaving: Callable[[], bool]


@asynccontextmanager
async def serve_edge(parts: EdgeParts, sockets: tuple[socket.socket, ...]) -> AsyncIterator[str]:
    """Serve the protocol, and give the address, until the block is left."""
    config = parts.config
    ssl_context = None if config.ssl is None else _renewed_context(config.ssl, parts)
    listen = Listen(host=config.host, port=config.port, sockets=sockets, ssl_context=ssl_context)
    app = build(edge_settings(config, parts.rates), _services(parts.channels), _ports(parts))
    close_connections(app, parts.is_leaving)
    async with serve(app, listen, _limits(config), grace=config.grace) as port:
        yield f"{config.host}:{port}"


def _renewed_context(settings: SslConfig, parts: EdgeParts) -> ssl.SSLContext:
    note_validity = partial(parts.metrics.set_certificate, "rest")
    files = certificate_files(settings)
    before = signatures(files)
    context = RenewableContext(settings, parts.config.host, note_validity)

    async def take_up() -> bool:
        await asyncio.to_thread(context.renew)
        return True

    if files:
        parts.renewals.add("rest", files, before, take_up)
    return context.listening


def edge_settings(config: Config, rates: Rates) -> EdgeSettings:
    """Return what the configuration says of the REST edge."""
    return EdgeSettings(
        prefix=config.endpoint,
        public_url=public_url(config),
        request_timeout=min(timedelta(seconds=config.request_timeout_seconds), config.services.timeout),
        body_limit=config.http.body_limit,
        body_timeout=config.http.body_timeout,
        compresses=config.http.compression == "auto",
        region_and_endpoint=config.credentials.region_and_endpoint,
        rate_of=rates,
        trusted_proxies=tuple(ipaddress.ip_network(text) for text in config.http.trusted_proxies),
        anonymous=config.allow_anonymous,
    )


def _services(channels: Mapping[ServiceName, aio.Channel]) -> Services:
    return Services(
        catalog=CatalogStub(channels[ServiceName.CATALOG]),
        snapshot=SnapshotStub(channels[ServiceName.SNAPSHOT]),
        presign=PresignStub(channels[ServiceName.PRESIGN]),
        vending=VendingStub(channels[ServiceName.VENDING]),
    )


def _ports(parts: EdgeParts) -> EdgePorts:
    files = FilesHandler(roots=parts.roots, keys=parts.keyring.keys(Purpose.LOCAL_URL), clock=parts.clock)
    return EdgePorts(
        audit=parts.audit,
        metrics=parts.metrics,
        files=files,
        buckets=parts.buckets,
        clock=parts.clock,
    )


def _limits(config: Config) -> Limits:
    return Limits(
        header_limit=config.http.header_limit,
        header_timeout=config.http.header_timeout,
        write_timeout=config.http.write_timeout,
        keep_alive=config.http.keep_alive,
        max_connections=config.http.max_connections,
    )
