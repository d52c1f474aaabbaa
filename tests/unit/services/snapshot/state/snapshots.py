"""Snapshots made by hand, and what is in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

from gateway.ports import LogFile
from gateway.services.snapshot.log.actions import Actions, read_commits
from gateway.services.snapshot.log.loading import Loaded
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.protocol import Protocol
from gateway.services.snapshot.log.schema import FILES
from gateway.services.snapshot.state.files import Files, Stock, memory_of
from gateway.services.snapshot.state.snapshot import Snapshot
from tests.builders import PLAIN_PROTOCOL, STARTED_AT

FIRST: Final[list[dict[str, Any]]] = [
    {"protocol": PLAIN_PROTOCOL},
    {"metaData": {"id": "t", "schemaString": "{}", "partitionColumns": [], "configuration": {}}},
]


def anchor(version: int) -> LogFile:
    return LogFile(f"{version:020d}.json", 1, STARTED_AT)


def files_of(count: int, *, stock: bool = False) -> Files:
    row = {"path": "a" * 50, "encoded": "a" * 50, "size": 1, "stats": "s" * 100}
    frame = pl.DataFrame([row] * count, schema=FILES)
    return Files(
        frame=frame,
        num_files=count,
        size=count,
        stock=Stock(memory_of(frame, None, 0)) if stock else None,
    )


def snapshot_of(files: int | Files = 0, version: int = 0, **metadata: Any) -> Snapshot:
    return Snapshot(
        version=version,
        protocol=Protocol(min_reader_version=1),
        metadata=Metadata(**{"id": "t", "schema_string": "{}", **metadata}),
        files=files_of(files) if isinstance(files, int) else files,
        anchor=anchor(version),
    )


def to_lines(actions: Sequence[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(action) + "\n" for action in actions).encode()


def commit(*actions: Mapping[str, Any]) -> Actions:
    return read_commits([("commit.json", to_lines(actions))])


def loaded(version: int, *commits: Actions, checkpoint: Sequence[Actions] = ()) -> Loaded:
    return Loaded(version=version, anchor=anchor(version), checkpoint=checkpoint, commits=commits)


def rows_of(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return the live rows, in order, with every field."""
    return snapshot.files.rows(0, snapshot.files.height).to_dicts()


def live_of(snapshot: Snapshot) -> list[tuple[str, int]]:
    return [(row["path"], row["size"]) for row in rows_of(snapshot)]
