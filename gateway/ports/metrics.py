"""What is counted."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol


class RpcMetrics(Protocol):
    def observe_rpc(self, method: str, code: str, elapsed: timedelta) -> None:
        """Count a call that this process has answered; ``method`` is the full gRPC method name."""


class CallerMetrics(Protocol):
    def count_refused_call(self, caller: str, reason: str) -> None:
        """Count a call that was not admitted; ``caller`` is a configured name, or empty for a stranger."""


class SnapshotMetrics(Protocol):
    """What the reading of logs costs, and what it saves."""

    def observe_load(self, kind: str, elapsed: timedelta, files: int) -> None:
        """Note that a log was read: ``cold`` from its checkpoint on, ``refresh`` by its new commits."""

    def count_check(self, outcome: str) -> None:
        """Count a look whether a version is the latest: ``listed``, ``failed``, or ``skipped`` as recent."""

    def observe_staleness(self, age: timedelta, freshness: timedelta) -> None:
        """Note how long ago it was checked that what is served is the latest, and how long it may be."""

    def count_fallback(self, reason: str) -> None:
        """Count a file of a log that could not be used and that something else took the place of."""

    def count_hints(self, kind: str, used: int, skipped: int) -> None:
        """Count predicate hints, ``sql`` or ``json``, by whether they could be used."""

    def count_pruned(self, kept: int, dropped: int) -> None:
        """Count the files that the hints of a query left in its answer, and out of it."""

    def set_memory(self, snapshots: int, size: int) -> None:
        """Tell how many snapshots are kept, and what they take."""

    def count_segment(self, *, is_kept: bool) -> None:
        """Count a segment of a snapshot's files by whether its lines were kept or had to be written."""

    def set_lines(self, size: int) -> None:
        """Tell what the lines that are kept take."""

    def count_index(self, outcome: str) -> None:
        """Count what became of a table's index when a version was read: ``used``, or why it was not."""

    def count_blocks(self, read: int, skipped: int) -> None:
        """Count the blocks of an index that a query looked at, and those that its hints left out."""


class HttpMetrics(Protocol):
    def show_http(self, route: str, method: str) -> None:
        """Tell of a route that may be asked for, so that what has not happened is 0 and not missing."""

    def observe_http(self, route: str, method: str, status: int, elapsed: timedelta) -> None: ...

    def count_throttled(self) -> None: ...

    def count_files(self, recipient: str, files: int, size: int) -> None:
        """Count files whose URLs were handed out, and their bytes."""

    def count_credential(self, recipient: str) -> None:
        """Count a credential that was handed out."""

    def count_recipient(self, recipient: str, status: int) -> None:
        """Count a request of somebody whom the catalog knows."""
