"""The metaData action: the table's own description, as the log has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.services.snapshot.log.text_memory import memory_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    id: str
    schema_string: str
    name: str | None = None
    description: str | None = None
    provider: str = "parquet"
    format_options: Mapping[str, str] = field(default_factory=dict)
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    created_time: int | None = None

    @property
    def memory(self) -> int:
        pairs = (*self.configuration.items(), *self.format_options.items())
        texts = [self.schema_string, self.name or "", self.description or "", *self.partition_columns]
        return memory_of(texts) + sum(map(memory_of, pairs))

    @property
    def column_mapping(self) -> str:
        """Return by what the files know their columns: ``none``, ``name`` or ``id``."""
        return self.configuration.get("delta.columnMapping.mode", "none").lower()

    def is_on(self, name: str) -> bool:
        """Tell whether a property of the table is set to true."""
        return self.configuration.get(name, "").lower() == "true"
