"""Which parts of a configuration could not be understood, and are made up so that the rest can be checked."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.config.path import Path


class Broken:
    """Paths of faults; asked about each table, so that it takes no longer where there are many."""

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self._paths = frozenset(paths)
        self._above = frozenset(path[:length] for path in self._paths for length in range(len(path)))

    def spares(self, *paths: Path) -> bool:
        """Tell whether nothing was broken at, above or below these paths."""
        return all(path not in self._above and self.leaves(path) for path in paths)

    def leaves(self, path: Path) -> bool:
        """Tell whether the path itself stands, whatever is broken below it."""
        return not any(path[:length] in self._paths for length in range(len(path) + 1))
