"""A look at all commits of a range before any of it is told: what could stop the answer half-way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from gateway.domain.grant import Grant
from gateway.errors import GatewayError
from gateway.services.snapshot.answer.servable import require_servable
from gateway.services.snapshot.changes.commit import Commit
from gateway.services.snapshot.changes.reading import ChangeRange, CommitBatch, CommitReader
from gateway.services.snapshot.changes.selection import Selection
from gateway.services.snapshot.log.actions import NO_FILES
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.protocol import Protocol
from gateway.services.snapshot.state.files import Files

# How much of the log is held for the answer itself; what is more is read a second time.
_HELD_BYTES: Final = 16 * 1024 * 1024
_LOOKED_AT: Final = ["path", "encoded", "size", "partitionValues", "deletionVector"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A version that changes what the table is."""

    version: int
    protocol: Protocol | None
    metadata: Metadata | None


class Survey:
    """Sees every commit of a range once, and holds those that are to be told, as far as they fit."""

    def __init__(self, selection: Selection, grant: Grant, *, start: int) -> None:
        self.turns: list[Turn] = []
        # A file with a deletion vector, where one is told.
        self.vector: pl.DataFrame | None = None
        # The paths of removed files of which the log does not say there what clients need.
        self.vague: list[pl.Series] = []
        # Why a file cannot be served.
        self.fault: GatewayError | None = None
        self._selection = selection
        self._grant = grant
        self._next = start
        self._held: list[Commit] = []
        self._held_bytes = 0

    async def see(self, reader: CommitReader, versions: ChangeRange) -> None:
        async for batch in reader.read(versions):
            await asyncio.to_thread(self._look, batch.commits)
            self._hold(batch)

    async def commits(self, reader: CommitReader, last: int) -> AsyncIterator[Sequence[Commit]]:
        """Return the commits to be told, once, reading again those only that were not held."""
        held, self._held = self._held, []
        yield held
        async for batch in reader.read(ChangeRange(first=self._next, last=last)):
            yield batch.commits

    def _hold(self, batch: CommitBatch) -> None:
        wanted = [commit for commit in batch.commits if commit.version >= self._next]
        if not wanted:
            return
        self._held_bytes += batch.size
        # Without a gap: after what did not fit, nothing does.
        if self._held_bytes <= _HELD_BYTES:
            self._held += wanted
            self._next = wanted[-1].version + 1

    def _look(self, commits: Sequence[Commit]) -> None:
        for commit in commits:
            if commit.protocol or commit.metadata:
                self.turns.append(
                    Turn(version=commit.version, protocol=commit.protocol, metadata=commit.metadata)
                )
        told = [rows for commit in commits for _, rows in self._selection(commit) if not rows.is_empty()]
        if told:
            # By what they have in common, in one look: change data has no deletion vectors.
            columns = [[name for name in _LOOKED_AT if name in rows.columns] for rows in told]
            parts = [rows[names] for rows, names in zip(told, columns, strict=True)]
            self._look_at(pl.concat([NO_FILES[_LOOKED_AT], *parts], how="diagonal"))

    def _look_at(self, rows: pl.DataFrame) -> None:
        try:
            require_servable(Files(frame=rows, num_files=rows.height, size=0), self._grant)
        except GatewayError as exc:
            # Told later: that the changes cannot be asked for at all matters more.
            self.fault = self.fault or exc
        if self.vector is None:
            found = rows.filter(pl.col("deletionVector").struct.field("storageType").is_not_null())
            self.vector = None if found.is_empty() else found.head(1)
        if rows["size"].has_nulls() or rows["partitionValues"].has_nulls():
            self.vague.append(
                rows.filter(pl.col("size").is_null() | pl.col("partitionValues").is_null())["path"]
            )
