"""Writes Delta logs to a local directory: commits, checkpoints of every kind, compactions."""

from __future__ import annotations

import json
import os
import uuid
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, Self

import polars as pl

from gateway.demo.checkpoint import to_checkpoint, to_sidecars, to_v2_checkpoint
from gateway.demo.table_state import Action, TableState
from gateway.domain.log import DIRECTORY, HINT, SIDECARS, checkpoint_name, commit_name, compaction_name
from gateway.domain.window import EPOCH

STARTED_AT: Final = datetime(2024, 1, 1, tzinfo=UTC)
STEP: Final = timedelta(hours=1)

_NAMESPACE: Final = uuid.UUID("6f1b2c1e-54a7-4c0e-9d53-0f6f6f0c7a11")


class LogBuilder:
    """A log under construction. Each commit is made an hour after the one before."""

    def __init__(self, directory: Path, *, protocol: Action, metadata: Action) -> None:
        self.directory = directory
        self.version = -1
        self._first: tuple[Action, ...] = ({"protocol": protocol}, {"metaData": metadata})
        self._state = TableState()
        self._state.apply(self._first)
        self._id = metadata["id"]
        self._next_at = STARTED_AT
        self._named: Counter[str] = Counter()

    @property
    def log(self) -> Path:
        return self.directory / DIRECTORY

    @property
    def live(self) -> dict[str, Action]:
        """Return the adds of the live files, by their path in the log."""
        return self._state.live

    @property
    def metadata(self) -> Action:
        return self._state.metadata or {}

    @property
    def protocol(self) -> Action:
        return self._state.protocol or {}

    @property
    def next_ms(self) -> int:
        """Return when the next commit is made."""
        return to_ms(self._next_at)

    def has(self, name: str) -> bool:
        """Tell whether a property of the table is set to true."""
        return bool(self.metadata["configuration"].get(name) == "true")

    def on(self, at: datetime) -> Self:
        """Say when the next commit is made."""
        self._next_at = at
        return self

    def commit(self, *actions: Action, **info: Any) -> Self:
        """Write the actions as the next version, with what is to be said of the commit."""
        if self.version < 0:
            actions = (*self._first, *actions)
        self.version += 1
        self._state.apply(actions)
        info = {"timestamp": self.next_ms, "operation": "WRITE", "engineInfo": "sluice-demo", **info}
        if self.has("delta.enableInCommitTimestamps"):
            info = {"inCommitTimestamp": self.next_ms, **info}
        self._write_log(commit_name(self.version), _to_ndjson([{"commitInfo": info}, *actions]))
        self._next_at += STEP
        return self

    def touch(self, version: int, at: datetime) -> Self:
        """Give a commit's file another time, as a copy of the table does."""
        os.utime(self.log / commit_name(version), (at.timestamp(), at.timestamp()))
        return self

    def checkpoint(self, parts: int = 1, *, parsed: pl.Struct | None = None) -> Self:
        """Write a checkpoint of the current version beside its commit."""
        actions = self._state.to_actions()
        for part, content in enumerate(to_checkpoint(actions, parts, parsed), start=1):
            self._write_log(checkpoint_name(self.version, part, parts), content)
        return self._hint(len(actions), **({"parts": parts} if parts > 1 else {}))

    def v2_checkpoint(
        self,
        form: Literal["json", "parquet", "classic"] = "json",
        *,
        sidecars: int = 1,
        parsed: pl.Struct | None = None,
    ) -> Self:
        """Write a checkpoint with its files in so many sidecars, or in itself with none of them.

        A classic one has the name of a checkpoint of old, and is parquet.
        """
        files = self._state.to_file_actions()
        actions: list[Action] = [
            {"checkpointMetadata": {"version": self.version}},
            *self._state.to_table_actions(),
            *(self._write_sidecars(files, sidecars, parsed) if sidecars else files),
        ]
        content = _to_ndjson(actions) if form == "json" else to_v2_checkpoint(actions, parsed)
        name = checkpoint_name(self.version)
        if form != "classic":
            name = f"{self.version:020d}.checkpoint.{self._unique('checkpoint')}.{form}"
        self._write_log(name, content)
        return self._hint(len(actions) + (len(files) if sidecars else 0))

    def compact(self, first: int, last: int) -> Self:
        """Write what a range of commits amounts to beside them."""
        state = TableState()
        for version in range(first, last + 1):
            lines = (self.log / commit_name(version)).read_text().split("\n")
            state.apply(json.loads(line) for line in lines if line)
        self._write_log(compaction_name(first, last), _to_ndjson(state.to_actions()))
        return self

    def clean_up(self, before: int) -> Self:
        """Delete the commits before a version, as a table's owner does after a checkpoint."""
        for version in range(before):
            (self.log / commit_name(version)).unlink(missing_ok=True)
        return self

    def _write_sidecars(self, files: list[Action], count: int, parsed: pl.Struct | None) -> Iterable[Action]:
        for content in to_sidecars(files, count, parsed):
            name = f"{self._unique('sidecar')}.parquet"
            self._write_log(f"{SIDECARS}/{name}", content)
            yield {"sidecar": {"path": name, "sizeInBytes": len(content), "modificationTime": self.next_ms}}

    def _hint(self, size: int, **more: Any) -> Self:
        self._write_log(HINT, _to_ndjson([{"version": self.version, "size": size, **more}]))
        return self

    def _write_log(self, name: str, content: bytes) -> None:
        file = self.log / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        os.utime(file, (self._next_at.timestamp(), self._next_at.timestamp()))

    def _unique(self, kind: str) -> uuid.UUID:
        """Return an id that is the same whenever the same table is built."""
        self._named[kind] += 1
        return uuid.uuid5(_NAMESPACE, f"{self._id}/{kind}{self._named[kind] - 1}")


def table_id(name: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, name))


def to_ms(at: datetime) -> int:
    return (at - EPOCH) // timedelta(milliseconds=1)


def _to_ndjson(objects: Iterable[Action]) -> bytes:
    lines = (json.dumps(item, separators=(",", ":"), ensure_ascii=False) for item in objects)
    return "".join(f"{line}\n" for line in lines).encode()
