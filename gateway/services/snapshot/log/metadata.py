"""The metaData action: the table's own description, as the log has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
        return len(self.schema_string) + sum(
            len(key) + len(value) for key, value in self.configuration.items()
        )

    def is_on(self, name: str) -> bool:
        """Tell whether a property of the table is set to true."""
        return self.configuration.get(name, "").lower() == "true"
