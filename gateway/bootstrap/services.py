"""Builds the gRPC services that a process runs, and imports no other service."""
# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from grpc import aio
from prometheus_client import CollectorRegistry

from gateway.adapters.keyring import Keyring
from gateway.config.schema import Config, ServiceName
from gateway.domain.grant import Audience
from gateway.domain.key import Purpose
from gateway.ports import AuditLog, CatalogStore, Clock, Jobs, StateStore, Storages
from gateway.rpc.grant import GrantVerifier
from gateway.v1 import catalog_pb2_grpc, presign_pb2_grpc, snapshot_pb2_grpc, vending_pb2_grpc

# Their names on the wire, for health and reflection.
WIRE_NAMES: Final[Mapping[ServiceName, str]] = {
    ServiceName.CATALOG: "gateway.v1.Catalog",
    ServiceName.SNAPSHOT: "gateway.v1.Snapshot",
    ServiceName.PRESIGN: "gateway.v1.Presign",
    ServiceName.VENDING: "gateway.v1.Vending",
}

Register = Callable[[aio.Server], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What services are made of."""

    config: Config
    keyring: Keyring
    catalog: CatalogStore
    storages: Storages
    # What replicas and workers share, and the jobs in it.
    state: StateStore
    jobs: Jobs
    audit: AuditLog
    registry: CollectorRegistry
    clock: Clock


def build_service(name: ServiceName, parts: Parts) -> Register:
    """Return what puts a service on a server."""
    return _BUILDERS[name](parts)


def _catalog(parts: Parts) -> Register:
    from gateway.services.catalog.grant_signer import GrantSigner
    from gateway.services.catalog.queries import Queries
    from gateway.services.catalog.servicer import CatalogServicer
    from gateway.services.catalog.showings import Showings
    from gateway.services.catalog.views import Views

    page_keys = parts.keyring.keys(Purpose.LIST_PAGE)
    key_id, private_key = parts.keyring.grant_private()
    servicer = CatalogServicer(
        store=parts.catalog,
        signer=GrantSigner(key_id, private_key, parts.clock),
        page_keys=page_keys,
        views=Views(
            Showings(parts.state, parts.jobs, parts.clock), Queries(parts.state, page_keys, parts.clock)
        ),
        audit=parts.audit,
        clock=parts.clock,
    )
    return _adder(catalog_pb2_grpc.add_CatalogServicer_to_server, servicer)


def _snapshot(parts: Parts) -> Register:
    from gateway.bootstrap.snapshot import build_snapshot

    servicer = build_snapshot(parts, _verifier(parts, Audience.SNAPSHOT))
    return _adder(snapshot_pb2_grpc.add_SnapshotServicer_to_server, servicer)


def _presign(parts: Parts) -> Register:
    from gateway.services.presign.servicer import PresignServicer

    servicer = PresignServicer(
        storages=parts.storages,
        verifier=_verifier(parts, Audience.PRESIGN),
        clock=parts.clock,
        life=timedelta(seconds=parts.config.pre_signed_url_timeout_seconds),
    )
    return _adder(presign_pb2_grpc.add_PresignServicer_to_server, servicer)


def _vending(parts: Parts) -> Register:
    from gateway.services.vending.servicer import VendingServicer

    servicer = VendingServicer(
        storages=parts.storages, verifier=_verifier(parts, Audience.VENDING), clock=parts.clock
    )
    return _adder(vending_pb2_grpc.add_VendingServicer_to_server, servicer)


_BUILDERS: Final[Mapping[ServiceName, Callable[[Parts], Register]]] = {
    ServiceName.CATALOG: _catalog,
    ServiceName.SNAPSHOT: _snapshot,
    ServiceName.PRESIGN: _presign,
    ServiceName.VENDING: _vending,
}


def _verifier(parts: Parts, audience: Audience) -> GrantVerifier:
    return GrantVerifier(parts.keyring.grant_public(), audience, parts.clock)


def _adder(add: Callable[[Any, aio.Server], None], servicer: Any) -> Register:
    return lambda server: add(servicer, server)
