from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.services.snapshot.log.listing import list_log
from gateway.services.snapshot.state.snapshot import Snapshot
from gateway.services.snapshot.state.store import SnapshotStore
from tests.fakes.snapshot_metrics import FakeSnapshotMetrics
from tests.unit.services.snapshot.log.generated_log import GeneratedLog, State, key_of

_BATCH = 50
# 200 logs in CI, 10,000 in the deep lane.
_BATCHES = 200 // _BATCH
_DEEP_BATCHES = 10_000 // _BATCH
_NOW = datetime(2025, 6, 1, tzinfo=UTC)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(_BATCHES))
async def test_every_snapshot_of_a_random_log_has_the_files_of_a_naive_replay(batch):
    for seed in range(batch * _BATCH, (batch + 1) * _BATCH):
        await check(seed)


@pytest.mark.deep
@pytest.mark.parametrize("batch", range(_BATCHES, _DEEP_BATCHES))
async def test_every_snapshot_of_yet_another_random_log_has_the_files_of_a_naive_replay(batch):
    for seed in range(batch * _BATCH, (batch + 1) * _BATCH):
        await check(seed)


async def check(seed: int) -> None:
    made = GeneratedLog(seed)
    log = made.reader.log
    # One store for all versions, in any order: most of them are read by way of others.
    store = new_store()
    listing = await list_log(log)
    versions = [made.random.randint(made.first, made.latest) for _ in range(3)]
    for version in versions:
        assert said_of(await store.at(log, listing, version)) == expected(made.states[version]), seed
    assert said_of(await store.latest(log)) == expected(made.states[made.latest]), seed
    assert said_of(await new_store().latest(log)) == expected(made.states[made.latest]), seed


def new_store() -> SnapshotStore:
    return SnapshotStore(memory=2**26, clock=lambda: _NOW, metrics=FakeSnapshotMetrics())


def said_of(snapshot: Snapshot) -> tuple[Any, ...]:
    rows = snapshot.files.rows(0, snapshot.files.height).to_dicts()
    found = {key_of(without_empty_vector(row)): (row["size"], row["partitionValues"]) for row in rows}
    assert len(found) == len(rows) == snapshot.files.num_files
    assert snapshot.files.size == sum(row["size"] for row in rows)
    return found, snapshot.metadata.configuration, snapshot.protocol.min_reader_version


def expected(state: State) -> tuple[Any, ...]:
    files = {key: (add["size"], add.get("partitionValues") or {}) for key, add in state.adds.items()}
    return files, state.metadata["configuration"], state.protocol["minReaderVersion"]


def without_empty_vector(row: dict[str, Any]) -> dict[str, Any]:
    vector = row["deletionVector"]
    return {**row, "deletionVector": vector if vector and vector["storageType"] else None}
