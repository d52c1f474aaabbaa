"""Where it is kept who was given what."""

from __future__ import annotations

from typing import Protocol

from gateway.domain.audit import AuditEvent


class AuditLog(Protocol):
    async def append(self, event: AuditEvent) -> None:
        """Keep the event, on disk before this returns; raise ``Unavailable`` when that fails."""

    def note(self, event: AuditEvent) -> None:
        """Keep the event soon, without waiting."""
