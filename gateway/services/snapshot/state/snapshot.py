"""A table at a version: immutable, shared by all that read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gateway.ports import LogFile
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.protocol import Protocol
from gateway.services.snapshot.state.files import Files
from gateway.services.snapshot.state.indexed import Indexed

# What a snapshot takes without a file and a schema: a thousand small tables are no small matter either.
_BYTES_PER_SNAPSHOT: Final = 24 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The live files of a version, with the protocol and metadata that hold for them."""

    version: int
    protocol: Protocol
    metadata: Metadata
    files: Files
    # The log file that holds the version.
    anchor: LogFile
    # Those of its files that are not held; None: all are.
    indexed: Indexed | None = None

    @property
    def num_files(self) -> int:
        return self.files.num_files + (self.indexed.num_files if self.indexed is not None else 0)

    @property
    def size(self) -> int:
        """Return the bytes of the live files, as the log states them."""
        return self.files.size + (self.indexed.size if self.indexed is not None else 0)

    @property
    def bare_memory(self) -> int:
        """Return what the snapshot takes beside another one whose files grew from the same."""
        rows = self.files.height // 8 + self.files.columns.order_memory
        indexed = self.indexed.memory if self.indexed is not None else 0
        return _BYTES_PER_SNAPSHOT + self.metadata.memory + self.protocol.memory + rows + indexed

    @property
    def memory(self) -> int:
        return self.bare_memory + self.files.memory
