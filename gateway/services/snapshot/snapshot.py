"""A table at a version: immutable, shared by all that read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from gateway.ports import LogFile

# Views, offsets and validity, which the estimate of a frame's size leaves out.
_BYTES_PER_ROW: Final = 100
_BYTES_PER_DROPPED: Final = 500
# What a snapshot takes without a file and a schema: a thousand small tables are no small matter either.
_BYTES_PER_SNAPSHOT: Final = 24 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """What a reader must be able to do, in the words of the log."""

    min_reader_version: int
    reader_features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The table's own description, as the log has it."""

    id: str
    schema_string: str
    name: str | None = None
    description: str | None = None
    provider: str = "parquet"
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)

    @property
    def memory(self) -> int:
        return len(self.schema_string) + sum(
            len(key) + len(value) for key, value in self.configuration.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The live files of a version, with the protocol and metadata that hold for them."""

    version: int
    protocol: Protocol
    metadata: Metadata
    # The columns of ``replay.FILES``. A later version keeps the order of those that stay and appends to them.
    files: pl.DataFrame = field(repr=False)
    # The bytes of the live files, as the log states them.
    size: int
    # The log file that holds the version.
    anchor: LogFile
    # Files that are gone and still take memory.
    dropped: int = 0

    @property
    def num_files(self) -> int:
        return self.files.height

    @property
    def memory(self) -> int:
        files = int(self.files.estimated_size()) + _BYTES_PER_ROW * self.files.height
        # Of a dropped file only the texts are left, as long as those of another.
        dropped = self.dropped * (files // self.files.height if self.files.height else _BYTES_PER_DROPPED)
        return _BYTES_PER_SNAPSHOT + self.metadata.memory + files + dropped
