"""The peer of the snapshot service: deltalake, in the environment that has it, lists a table's files."""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.engine_worker import serve


class Deltalake:
    def __init__(self, open_table: Callable[[str], Any]) -> None:
        self._open_table = open_table
        self._table: Any = None

    def load(self, directory: str) -> int:
        self._table = self._open_table(directory)
        return self._count()

    def refresh(self) -> int:
        self._table.update_incremental()
        return self._count()

    def _count(self) -> int:
        # The files are not read before they are asked for.
        return int(self._table.get_add_actions().num_rows)


if __name__ == "__main__":
    # Here, so that the environment without it can import this file.
    from deltalake import DeltaTable

    engine = Deltalake(DeltaTable)
    serve({"load": engine.load, "refresh": engine.refresh})
