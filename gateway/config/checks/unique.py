"""Names that must not occur twice."""

from __future__ import annotations

from collections.abc import Hashable

from gateway.config.path import Path, format_path
from gateway.config.report import Report


class Unique:
    """Reports what was seen before, with the place where that was."""

    def __init__(self, report: Report, message: str) -> None:
        self._report = report
        # Takes the place of the first in ``{first}``.
        self._message = message
        self._seen: dict[Hashable, Path] = {}

    def add(self, key: Hashable, path: Path, value: object) -> None:
        first = self._seen.setdefault(key, path)
        if first != path:
            self._report.fault(path, self._message.format(first=format_path(first)), value)
