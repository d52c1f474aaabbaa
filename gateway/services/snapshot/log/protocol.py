"""The protocol action: what a reader must be able to do, in the words of the log."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.services.snapshot.log.text_memory import memory_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    min_reader_version: int
    min_writer_version: int = 1
    # None where the action has no list: an empty one means something else to some readers.
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None

    @property
    def memory(self) -> int:
        return memory_of((*(self.reader_features or ()), *(self.writer_features or ())))
