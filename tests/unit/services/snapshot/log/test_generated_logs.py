from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from gateway.errors import GatewayError
from gateway.services.snapshot.log.actions import Actions
from gateway.services.snapshot.log.listing import list_log, list_recent
from gateway.services.snapshot.log.loading import Loaded, load_steps, load_version
from gateway.services.snapshot.log.path import encode_path
from gateway.services.snapshot.log.schema import ADD
from tests.unit.services.snapshot.log.generated_log import GeneratedLog, State, key_of

_BATCH = 50
# 200 logs in CI, 10,000 in the deep lane.
_BATCHES = 200 // _BATCH
_DEEP_BATCHES = 10_000 // _BATCH


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(_BATCHES))
async def test_every_version_of_a_random_log_is_what_its_commits_come_to(batch):
    for seed in range(batch * _BATCH, (batch + 1) * _BATCH):
        await check(seed)


@pytest.mark.deep
@pytest.mark.parametrize("batch", range(_BATCHES, _DEEP_BATCHES))
async def test_every_version_of_yet_another_random_log_is_what_its_commits_come_to(batch):
    for seed in range(batch * _BATCH, (batch + 1) * _BATCH):
        await check(seed)


async def check(seed: int) -> None:
    made = GeneratedLog(seed)
    log, chance = made.reader.log, made.random
    listing = await list_log(log)
    assert listing.latest == made.latest, seed
    for version in {made.latest, chance.randint(made.first, made.latest)}:
        loaded = await load_version(log, listing, version)
        assert rows_of(loaded) == expected(made.states[version]), (seed, version)
        assert facts_of(loaded) == facts_expected(made.states[version]), (seed, version)
    await check_recent(made, seed)
    await check_steps(made, seed)


async def check_recent(made: GeneratedLog, seed: int) -> None:
    listing = await list_recent(made.reader.log)
    loaded = await load_version(made.reader.log, listing, listing.latest)
    assert rows_of(loaded) == expected(made.states[made.latest]), seed


async def check_steps(made: GeneratedLog, seed: int) -> None:
    log, after = made.reader.log, made.random.randint(made.first, made.latest)
    listing = await list_log(log)
    base = await load_version(log, listing, after)
    steps = await load_steps(log, listing, after, made.latest)
    assert steps is not None, seed
    rows = apply(rows_of(base), steps.commits)
    assert rows == expected(made.states[made.latest]), seed


def rows_of(loaded: Loaded) -> dict[Any, Any]:
    listed = [row for part in loaded.checkpoint for row in part.files.iter_rows(named=True)]
    rows = {key_of(row): row_of(row) for row in map(normal, listed)}
    assert len(rows) == len(listed)
    return apply(rows, loaded.commits)


def apply(rows: dict[Any, Any], commits: Iterable[Actions]) -> dict[Any, Any]:
    for commit in commits:
        for key in commit.removed.iter_rows():
            rows.pop(key, None)
        for row in map(normal, commit.files.iter_rows(named=True)):
            rows[key_of(row)] = row_of(row)
    return rows


def expected(state: State) -> dict[Any, Any]:
    return {key: row_of({**add, "encoded": encoded(add["path"])}) for key, add in state.adds.items()}


def facts_of(loaded: Loaded) -> tuple[Any, ...]:
    parts = [*loaded.checkpoint, *loaded.commits]
    protocol = [part.protocol for part in parts if part.protocol][-1]
    metadata = [part.metadata for part in parts if part.metadata][-1]
    return (
        (protocol.min_reader_version, protocol.min_writer_version),
        (protocol.reader_features, protocol.writer_features),
        (metadata.name, metadata.schema_string, metadata.partition_columns, metadata.created_time),
        metadata.configuration,
    )


def facts_expected(state: State) -> tuple[Any, ...]:
    protocol, metadata = state.protocol, state.metadata
    features = [protocol.get(name) for name in ("readerFeatures", "writerFeatures")]
    columns = tuple(metadata["partitionColumns"])
    return (
        (protocol["minReaderVersion"], protocol["minWriterVersion"]),
        tuple(None if names is None else tuple(names) for names in features),
        (metadata["name"], metadata["schemaString"], columns, metadata["createdTime"]),
        metadata["configuration"],
    )


def row_of(fields: dict[str, Any]) -> dict[str, Any]:
    """Return every field; of statistics what they say."""
    row = {name: fields.get(name) for name in (*ADD, "encoded")}
    row["stats"] = None if row["stats"] is None else json.loads(row["stats"])
    vector = row["deletionVector"]
    row["deletionVector"] = vector and {"offset": None, **vector}
    return row


def normal(row: dict[str, Any]) -> dict[str, Any]:
    vector = row["deletionVector"]
    return {**row, "deletionVector": vector if vector and vector["storageType"] else None}


def encoded(path: str) -> str | None:
    try:
        return encode_path(path)
    except GatewayError:
        return None
