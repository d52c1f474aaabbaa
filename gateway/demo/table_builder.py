"""Writes Delta tables to a local directory: real ones, byte for byte the same each time."""

from __future__ import annotations

import hashlib
import io
import json
import os
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

import polars as pl

from gateway.demo.checkpoint import to_checkpoint
from gateway.demo.data_file import DataFile, to_data_file
from gateway.demo.partition import directory_of, log_path, partition_text
from gateway.demo.schema import Field, polars_schema, schema_string
from gateway.domain.log import DIRECTORY, checkpoint_name, commit_name

Action: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = pl.DataFrame | Sequence[Mapping[str, Any]]

STARTED_AT: Final = datetime(2024, 1, 1, tzinfo=UTC)
STEP: Final = timedelta(hours=1)
PLAIN_PROTOCOL: Final[Action] = {"minReaderVersion": 1, "minWriterVersion": 2}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class TableBuilder:
    """A table under construction. Each verb that changes it is a commit, an hour after the one before."""

    def __init__(
        self,
        directory: Path,
        fields: Sequence[Field],
        *,
        partition_by: Sequence[str] = (),
        protocol: Action = PLAIN_PROTOCOL,
        **metadata: Any,
    ) -> None:
        self.directory = directory
        self.fields = tuple(fields)
        self.partition_by = tuple(partition_by)
        self.version = -1
        # The add actions of the files that are live, by their path in the log.
        self.live: dict[str, Action] = {}
        self._removed: dict[str, Action] = {}
        self._protocol = protocol
        self._metadata = self._describe(metadata)
        self._pending: list[Action] = [{"protocol": protocol}, {"metaData": self._metadata}]
        self._committed_at = STARTED_AT - STEP
        self._placed = 0

    @property
    def log(self) -> Path:
        return self.directory / DIRECTORY

    def append(self, rows: Rows, *, stats: bool = True, files: int = 1) -> Self:
        """Add rows, as so many files for each combination of partition values."""
        return self.commit(*self._write(rows, stats=stats, files=files))

    def overwrite(self, rows: Rows, *, stats: bool = True) -> Self:
        """Put rows in the place of all that is there."""
        return self.commit(*self._remove(self.live), *self._write(rows, stats=stats, files=1))

    def delete(self, where: pl.Expr) -> Self:
        """Delete the rows that meet a condition on data columns, writing anew the files that keep some."""
        actions: list[Action] = []
        for path, add in self.live.items():
            rows = pl.read_parquet(io.BytesIO(self.read(path)))
            kept = rows.filter(~where)
            if kept.height < rows.height:
                actions += self._remove([path])
                actions += [self._place(to_data_file(kept), add["partitionValues"])] if kept.height else []
        return self.commit(*actions)

    def delete_files(self, *paths: str) -> Self:
        return self.commit(*self._remove(paths))

    def create(self) -> Self:
        """Commit a table without a file."""
        return self.commit()

    def describe(self, **metadata: Any) -> Self:
        """Change the table's name, description, configuration or any other field of its metaData."""
        self._metadata = {**self._metadata, **metadata}
        return self.commit({"metaData": self._metadata})

    def upgrade(self, protocol: Action) -> Self:
        self._protocol = protocol
        return self.commit({"protocol": protocol})

    def place(self, file: DataFile, values: Mapping[str, str | None]) -> Action:
        """Write a file and return the action that adds it, for ``commit``."""
        return self._place(file, values)
