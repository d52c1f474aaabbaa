"""Writes Delta tables to a local directory: real ones, and the same bytes each time."""

from __future__ import annotations

import io
import json
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any, Final, Self, TypeAlias
from urllib.parse import unquote

import polars as pl

from gateway.demo.checkpoint import to_checkpoint
from gateway.demo.data_file import DataFile, to_data_file
from gateway.demo.partition import directory_of, log_path, partition_text
from gateway.demo.schema import Field, polars_schema, schema_string
from gateway.domain.log import DIRECTORY, checkpoint_name, commit_name
from gateway.domain.window import EPOCH

Action: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = pl.DataFrame | Sequence[Mapping[str, Any]]

STARTED_AT: Final = datetime(2024, 1, 1, tzinfo=UTC)
STEP: Final = timedelta(hours=1)
PLAIN_PROTOCOL: Final[Action] = {"minReaderVersion": 1, "minWriterVersion": 2}

_NAMESPACE: Final = uuid.UUID("6f1b2c1e-54a7-4c0e-9d53-0f6f6f0c7a11")


class TableBuilder:
    """A table under construction. Each verb that changes it is a commit, an hour after the one before."""

    def __init__(
        self,
        directory: Path,
        fields: Sequence[Field],
        *,
        partition_by: Sequence[str] = (),
        protocol: Action = PLAIN_PROTOCOL,
        metadata: Action | None = None,
    ) -> None:
        self.directory = directory
        self.version = -1
        # The adds of the live files, by their path in the log.
        self.live: dict[str, Action] = {}
        self._removed: dict[str, Action] = {}
        self._fields = tuple(fields)
        self._partition_by = tuple(partition_by)
        self._protocol = protocol
        self._metadata = self._first_metadata() | dict(metadata or {})
        self._next_at = STARTED_AT
        self._placed = 0

    @property
    def log(self) -> Path:
        return self.directory / DIRECTORY

    @property
    def metadata(self) -> Action:
        return self._metadata

    def create(self) -> Self:
        """Commit without a file: the table is there, and empty."""
        return self.commit()

    def append(self, rows: Rows, *, stats: bool = True, files: int = 1) -> Self:
        """Add rows, in so many files for each combination of partition values."""
        return self.commit(*self._write(rows, stats=stats, files=files))

    def overwrite(self, rows: Rows) -> Self:
        """Put rows in the place of all that is there."""
        return self.commit(*self.remove(*self.live), *self._write(rows, stats=True, files=1))

    def delete(self, where: pl.Expr) -> Self:
        """Delete rows by a condition on data columns, and write anew the files that keep some."""
        actions: list[Action] = []
        for path, add in self.live.items():
            rows = pl.read_parquet(io.BytesIO(self.read(path)))
            kept = rows.remove(where)
            if kept.height < rows.height:
                actions += self.remove(path)
                actions += [self.place(to_data_file(kept), add["partitionValues"])] if kept.height else []
        return self.commit(*actions)

    def delete_files(self, *paths: str) -> Self:
        return self.commit(*self.remove(*paths))

    def describe(self, **metadata: Any) -> Self:
        """Change fields of the table's metaData."""
        return self.commit({"metaData": {**self._metadata, **metadata}})

    def upgrade(self, **protocol: Any) -> Self:
        return self.commit({"protocol": protocol})

    def on(self, at: datetime) -> Self:
        """Say when the next commit is made."""
        self._next_at = at
        return self

    def commit(self, *actions: Action) -> Self:
        """Write the actions as the next version."""
        if self.version < 0:
            actions = ({"protocol": self._protocol}, {"metaData": self._metadata}, *actions)
        self.version += 1
        for action in actions:
            self._apply(action)
        info = {"timestamp": _to_ms(self._next_at), "operation": "WRITE", "engineInfo": "sluice-demo"}
        self._write_log(commit_name(self.version), _to_ndjson([{"commitInfo": info}, *actions]))
        self._next_at += STEP
        return self

    def checkpoint(self, parts: int = 1) -> Self:
        """Write a checkpoint of the current version beside its commit."""
        actions: list[Action] = [{"protocol": self._protocol}, {"metaData": self._metadata}]
        actions += [{"add": add} for add in self.live.values()]
        actions += [{"remove": remove} for remove in self._removed.values()]
        for part, content in enumerate(to_checkpoint(actions, parts), start=1):
            self._write_log(checkpoint_name(self.version, part, parts), content)
        hint = {"version": self.version, "size": len(actions), **({"parts": parts} if parts > 1 else {})}
        self._write_log("_last_checkpoint", _to_ndjson([hint]))
        return self

    def clean_up(self, before: int) -> Self:
        """Delete the commits before a version, as a table's owner does after a checkpoint."""
        for version in range(before):
            (self.log / commit_name(version)).unlink(missing_ok=True)
        return self

    def read(self, path: str) -> bytes:
        """Return the content of a file by its path in the log."""
        return (self.directory / unquote(path)).read_bytes()

    def place(self, file: DataFile, values: Mapping[str, str | None]) -> Action:
        """Write a data file and return the action that adds it."""
        key = str(PurePosixPath(directory_of(values)) / self._next_name())
        target = self.directory / key
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        add: dict[str, Any] = {
            "path": log_path(key),
            "partitionValues": dict(values),
            "size": len(file.content),
            "modificationTime": _to_ms(self._next_at),
            "dataChange": True,
        }
        return {"add": add | ({"stats": file.stats} if file.stats is not None else {})}

    def remove(self, *paths: str) -> list[Action]:
        """Return the actions that remove live files."""
        at = _to_ms(self._next_at)
        return [{"remove": {"path": path, "deletionTimestamp": at, "dataChange": True}} for path in paths]

    def _write(self, rows: Rows, *, stats: bool, files: int) -> list[Action]:
        frame = pl.DataFrame(rows, schema=polars_schema(self._fields))
        if not self._partition_by:
            return [self.place(to_data_file(part, stats=stats), {}) for part in _split(frame, files)]
        groups = frame.partition_by(self._partition_by, maintain_order=True, include_key=True)
        return [action for group in groups for action in self._write_group(group, stats=stats, files=files)]

    def _write_group(self, group: pl.DataFrame, *, stats: bool, files: int) -> Iterable[Action]:
        values = {column: partition_text(group[column][0]) for column in self._partition_by}
        data = group.drop(self._partition_by)
        return [self.place(to_data_file(part, stats=stats), values) for part in _split(data, files)]

    def _apply(self, action: Action) -> None:
        if add := action.get("add"):
            self.live[add["path"]] = add
            self._removed.pop(add["path"], None)
        elif remove := action.get("remove"):
            self.live.pop(remove["path"], None)
            self._removed[remove["path"]] = remove
        self._metadata = action.get("metaData", self._metadata)
        self._protocol = action.get("protocol", self._protocol)

    def _write_log(self, name: str, content: bytes) -> None:
        self.log.mkdir(parents=True, exist_ok=True)
        file = self.log / name
        file.write_bytes(content)
        os.utime(file, (self._next_at.timestamp(), self._next_at.timestamp()))

    def _next_name(self) -> str:
        unique = uuid.uuid5(_NAMESPACE, f"{self._metadata['id']}/{self._placed}")
        self._placed += 1
        return f"part-{self._placed - 1:05d}-{unique}.c000.snappy.parquet"

    def _first_metadata(self) -> dict[str, Any]:
        return {
            "id": str(uuid.uuid5(_NAMESPACE, self.directory.name)),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema_string(self._fields),
            "partitionColumns": list(self._partition_by),
            "configuration": {},
            "createdTime": _to_ms(STARTED_AT),
        }


def _split(frame: pl.DataFrame, files: int) -> Iterable[pl.DataFrame]:
    size = max(-(-frame.height // files), 1)
    return frame.iter_slices(size) if frame.height else [frame]


def _to_ms(at: datetime) -> int:
    return (at - EPOCH) // timedelta(milliseconds=1)


def _to_ndjson(objects: Iterable[Action]) -> bytes:
    lines = (json.dumps(item, separators=(",", ":"), ensure_ascii=False) for item in objects)
    return "".join(f"{line}\n" for line in lines).encode()
