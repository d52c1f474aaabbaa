"""Builds the snapshot service."""

from __future__ import annotations

from datetime import timedelta

from gateway.adapters.snapshot_metrics import PrometheusSnapshotMetrics
from gateway.bootstrap.services import Parts
from gateway.config.schema import Config
from gateway.domain.key import Purpose
from gateway.rpc.grant import GrantVerifier
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


def build_snapshot(parts: Parts, verifier: GrantVerifier) -> SnapshotServicer:
    """Return the snapshot service of a process."""
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
    return SnapshotServicer(
        storages=parts.storages,
        verifier=verifier,
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


def _hint_settings(config: Config) -> HintSettings:
    # The reference server has a key for each of its two ways to evaluate JSON; here there is one way.
    json = config.evaluate_json_predicate_hints or config.evaluate_json_predicate_hints_v2
    return HintSettings(sql=config.evaluate_predicate_hints, json=json)
