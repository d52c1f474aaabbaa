"""A table at a version: immutable, shared by all that read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gateway.ports import LogFile
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.protocol import Protocol
from gateway.services.snapshot.state.files import Files

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

    @property
    def bare_memory(self) -> int:
        """Return what the snapshot takes beside another one whose files grew from the same."""
        rows = self.files.height // 8 + self.files.columns.order_memory
        return _BYTES_PER_SNAPSHOT + self.metadata.memory + self.protocol.memory + rows

    @property
    def memory(self) -> int:
        return self.bare_memory + self.files.memory
