"""A table at a version: immutable, shared by all that read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gateway.ports import LogFile
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.protocol import Protocol
from gateway.services.snapshot.state.files import Files

# Views, offsets and validity, which the estimate of a frame's size leaves out.
_BYTES_PER_ROW: Final = 100
_BYTES_PER_DROPPED: Final = 500
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
    # Files that are gone and still take memory.
    dropped: int = 0

    @property
    def memory(self) -> int:
        files = int(self.files.frame.estimated_size()) + _BYTES_PER_ROW * self.files.height
        # Of a dropped file only the texts are left, as long as those of another.
        dropped = self.dropped * (files // self.files.height if self.files.height else _BYTES_PER_DROPPED)
        return _BYTES_PER_SNAPSHOT + self.metadata.memory + files + dropped
