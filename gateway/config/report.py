"""Collects what is wrong with a configuration while it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from gateway.config.broken import Broken
from gateway.config.faults import Fault
from gateway.config.path import Path, describe, format_path, redacted

_ABSENT: Final = object()


class Report:
    """Faults and warnings by path."""

    def __init__(self) -> None:
        self._faults: dict[Path, Fault] = {}
        self._warnings: dict[tuple[Path, str], list[Path]] = {}
        # Environment variables by the path of the value that came from them.
        self._origins: dict[Path, str] = {}
        self.broken = Broken()

    def note_origin(self, path: Path, variable: str) -> None:
        self._origins[path] = variable

    def fault(self, path: Path, message: str, value: object = _ABSENT, suggestion: str = "") -> None:
        """Keep the first fault of a path, and none of what stands below it."""
        if any(path[:length] in self._faults for length in range(1, len(path) + 1)):
            return
        origin = self._origin(path)
        found = "" if value is _ABSENT else describe(value, path)
        if origin.endswith("_FILE") and isinstance(value, str):
            found = f"a text of {len(value)} characters"
        self._faults[path] = Fault(
            path=origin or format_path(path), message=redacted(message), found=found, suggestion=suggestion
        )

    def warn(self, path: Path, message: str) -> None:
        # Entries of a list that were written alike are told of once.
        alike = tuple(0 if isinstance(step, int) else step for step in path)
        self._warnings.setdefault((alike, message), []).append(path)

    def mark_broken(self) -> None:
        """Remember where the faults so far are: what follows from those is not reported too."""
        self.broken = Broken(self._faults)

    def is_intact(self, *paths: Path) -> bool:
        """Tell whether nothing was broken at, above or below these paths."""
        return self.broken.spares(*paths)

    @property
    def has_faults(self) -> bool:
        return bool(self._faults)

    def faults(self, lines: Mapping[Path, int]) -> tuple[Fault, ...]:
        """Return the faults in the order of the file, each with its line."""
        found = [
            fault if self._origin(path) else replace(fault, line=_line(path, lines))
            for path, fault in self._faults.items()
        ]
        return tuple(sorted(found, key=lambda fault: (fault.line is None, fault.line or 0)))

    def warnings(self) -> tuple[str, ...]:
        return tuple(self._warning(paths, message) for (_alike, message), paths in self._warnings.items())

    def _warning(self, paths: list[Path], message: str) -> str:
        more = f" (and at {len(paths) - 1:,} more places)" if len(paths) > 1 else ""
        where = self._origin(paths[0]) or format_path(paths[0])
        return f"{where}: {message}{more}" if where else f"{message}{more}"

    def _origin(self, path: Path) -> str:
        for length in range(len(path), 0, -1):
            if origin := self._origins.get(path[:length]):
                return origin
        return ""


def _line(path: Path, lines: Mapping[Path, int]) -> int | None:
    # What is missing, merged or aliased stands nowhere itself: its nearest place is shown.
    return next((lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in lines), None)
