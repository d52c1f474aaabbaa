"""An audit log and HTTP metrics that remember."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from gateway.domain.audit import AuditEvent
from gateway.errors import Unavailable


@dataclass
class FakeAuditLog:
    """Keeps events in memory; ``broken`` makes it refuse those that must be kept."""

    broken: bool = False
    appended: list[AuditEvent] = field(default_factory=list)
    noted: list[AuditEvent] = field(default_factory=list)

    async def append(self, event: AuditEvent) -> None:
        if self.broken:
            raise Unavailable("the audit log cannot be written")
        self.appended.append(event)

    def note(self, event: AuditEvent) -> None:
        self.noted.append(event)


@dataclass
class FakeHttpMetrics:
    requests: list[tuple[str, str, int]] = field(default_factory=list)
    throttled: int = 0
    files: list[tuple[int, int]] = field(default_factory=list)
    # Who asked, and the status that came of it.
    recipients: list[tuple[str, int]] = field(default_factory=list)
    # Whom each credential was handed to.
    credentials: list[str] = field(default_factory=list)
    # Routes that may be asked for.
    shown: set[tuple[str, str]] = field(default_factory=set)

    def show_http(self, route: str, method: str) -> None:
        self.shown.add((route, method))

    def observe_http(self, route: str, method: str, status: int, elapsed: timedelta) -> None:
        assert elapsed >= timedelta(0)
        self.requests.append((route, method, status))

    def count_throttled(self) -> None:
        self.throttled += 1

    def count_files(self, recipient: str, files: int, size: int) -> None:
        assert recipient
        self.files.append((files, size))

    def count_credential(self, recipient: str) -> None:
        self.credentials.append(recipient)

    def count_recipient(self, recipient: str, status: int) -> None:
        self.recipients.append((recipient, status))
