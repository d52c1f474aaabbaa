"""Audit events: who was given what, or was refused, and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

SCHEMA_VERSION: Final = 1


class AuditKind(StrEnum):
    # URLs or a credential were handed out.
    GRANT = "grant"
    # A request that handed out nothing: listings, versions, metadata.
    REQUEST = "request"
    DENIAL = "denial"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """One line of the audit log. Holds names and counts, never a token, URL or credential."""

    id: str
    at: datetime
    kind: AuditKind
    operation: str
    outcome: str
    principal: str = ""
    # The platform service that acted for the principal.
    actor: str = ""
    share: str = ""
    schema: str = ""
    table: str = ""
    table_id: str = ""
    version: int | None = None
    mode: str = ""
    locations: tuple[str, ...] = ()
    credential_id: str = ""
    expires_at: datetime | None = None
    files: int = 0
    file_bytes: int = 0
    request_id: str = ""
    remote: str = ""
    user_agent: str = ""
    duration_ms: int = 0
