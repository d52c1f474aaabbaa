"""Builds the gRPC services that a process runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from grpc import aio
from prometheus_client import CollectorRegistry

from gateway.adapters.keyring import Keyring
from gateway.adapters.snapshot_metrics import PrometheusSnapshotMetrics
from gateway.config.schema import Config, ServiceName
from gateway.domain.grant import Audience
from gateway.domain.key import Purpose
from gateway.ports import AuditLog, CatalogStore, Clock, Jobs, StateStore, Storages
from gateway.rpc.grant import GrantVerifier
from gateway.services.catalog.grant_signer import GrantSigner
from gateway.services.catalog.queries import Queries
from gateway.services.catalog.servicer import CatalogServicer
from gateway.services.catalog.showings import Showings
from gateway.services.catalog.views import Views
from gateway.services.presign.servicer import PresignServicer
from gateway.services.snapshot.answer.rendered import RenderedPages
from gateway.services.snapshot.change_query import ChangeQueries
from gateway.services.snapshot.fault_log import FaultLog
from gateway.services.snapshot.file_query import FileQueries, HintSettings
from gateway.services.snapshot.index.shelf import MEMORY, IndexShelf
from gateway.services.snapshot.paging import PageLimits
from gateway.services.snapshot.servicer import SnapshotServicer
from gateway.services.snapshot.state.index_loading import IndexLoader
from gateway.services.snapshot.state.store import SnapshotStore
from gateway.services.snapshot.token import FileTokens
from gateway.services.vending.servicer import VendingServicer
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
    key_id, private_key = parts.keyring.grant_private()
    servicer = CatalogServicer(
        store=parts.catalog,
        signer=GrantSigner(key_id, private_key, parts.clock),
        page_keys=parts.keyring.keys(Purpose.LIST_PAGE),
        views=_views(parts),
        audit=parts.audit,
        clock=parts.clock,
    )
    return _adder(catalog_pb2_grpc.add_CatalogServicer_to_server, servicer)


def _views(parts: Parts) -> Views:
    keys = parts.keyring.keys(Purpose.LIST_PAGE)
    showings = Showings(parts.state, parts.jobs, parts.clock)
    return Views(showings, Queries(parts.state, keys, parts.clock))


def _snapshot(parts: Parts) -> Register:
    config = parts.config
    metrics = PrometheusSnapshotMetrics(parts.registry)
    memory = config.snapshots.memory
    shelf = IndexShelf(parts.state, metrics, memory=min(MEMORY, memory // 8))
    store = SnapshotStore(memory=memory, clock=parts.clock, metrics=metrics, indexes=IndexLoader(shelf))
    tokens = FileTokens(
        page_keys=parts.keyring.keys(Purpose.FILE_PAGE),
        refresh_keys=parts.keyring.keys(Purpose.REFRESH),
        page_life=timedelta(milliseconds=config.query_table_page_token_ttl_ms),
        refresh_life=timedelta(milliseconds=config.refresh_token_ttl_ms),
        clock=parts.clock,
    )
    limits = PageLimits(files=config.query_table_page_size_limit)
    servicer = SnapshotServicer(
        storages=parts.storages,
        verifier=_verifier(parts, Audience.SNAPSHOT),
        store=store,
        files=FileQueries(
            store=store,
            tokens=tokens,
            limits=limits,
            hints=_hint_settings(config),
            rendered=RenderedPages(config.snapshots.lines, metrics),
            metrics=metrics,
        ),
        changes=ChangeQueries(store=store, tokens=tokens, limits=limits),
        faults=FaultLog(parts.clock),
    )
    return _adder(snapshot_pb2_grpc.add_SnapshotServicer_to_server, servicer)


def _hint_settings(config: Config) -> HintSettings:
    # The reference server has a key for each of its two ways to evaluate JSON; here there is one way.
    json = config.evaluate_json_predicate_hints or config.evaluate_json_predicate_hints_v2
    return HintSettings(sql=config.evaluate_predicate_hints, json=json)


def _presign(parts: Parts) -> Register:
    servicer = PresignServicer(
        storages=parts.storages,
        verifier=_verifier(parts, Audience.PRESIGN),
        clock=parts.clock,
        life=timedelta(seconds=parts.config.pre_signed_url_timeout_seconds),
    )
    return _adder(presign_pb2_grpc.add_PresignServicer_to_server, servicer)


def _vending(parts: Parts) -> Register:
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
