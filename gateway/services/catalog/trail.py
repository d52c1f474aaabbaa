"""The audit events of callers that keep no audit log of their own: all but an edge."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from gateway.domain.audit import AuditEvent, AuditKind
from gateway.domain.grant import Audience
from gateway.domain.table import AccessMode, Table
from gateway.errors import GatewayError, NotFound, PermissionDenied, Unauthenticated
from gateway.ports import AuditLog, Clock
from gateway.services.catalog.callers import Asker, Visitor
from gateway.services.catalog.operation import Operation
from gateway.services.catalog.quoting import clipped

OK: Final = "ok"

_DENIALS: Final = (Unauthenticated, PermissionDenied, NotFound)
# What a service that is given such a grant can hand out.
_MODES: Final = {Audience.PRESIGN: AccessMode.URL, Audience.VENDING: AccessMode.DIR}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call that is under way."""

    operation: Operation
    request_id: str
    remote: str
    started_at: datetime


class Trail:
    """Writes events of calls to the audit log."""

    def __init__(self, audit: AuditLog, clock: Clock) -> None:
        self._audit = audit
        self._clock = clock

    def note_answer(self, call: Call, asker: Asker) -> None:
        if not asker.edge:
            self._audit.note(self._event(call, AuditKind.REQUEST, OK, asker))

    def note_error(self, call: Call, error: GatewayError, visitor: Visitor, asker: Asker | None) -> None:
        """Note what was refused, even to one who did not get as far as saying whom it asks for."""
        if asker is not None and asker.edge:
            return
        kind = AuditKind.DENIAL if isinstance(error, _DENIALS) else AuditKind.REQUEST
        event = self._event(call, kind, error.error_code, asker)
        if asker is None and visitor.service is not None:
            event = replace(event, actor=visitor.service.name)
        self._audit.note(event)

    async def keep_grant(
        self, call: Call, asker: Asker, table: Table, audiences: Sequence[Audience], expires_at: datetime
    ) -> None:
        """Keep the event of a grant before it is handed out; raise when it cannot be kept."""
        if asker.edge:
            return
        modes = [_MODES[audience] for audience in audiences if audience in _MODES]
        kind = AuditKind.GRANT if modes else AuditKind.REQUEST
        event = replace(
            self._event(call, kind, OK, asker),
            share=table.name.share,
            schema=table.name.schema,
            table=table.name.table,
            table_id=table.id,
            mode=",".join(modes),
            locations=tuple(location.text for location in (table.location, *table.auxiliary_locations)),
            expires_at=expires_at,
        )
        await self._audit.append(event)

    def _event(self, call: Call, kind: AuditKind, outcome: str, asker: Asker | None) -> AuditEvent:
        now = self._clock()
        return AuditEvent(
            id=uuid.uuid4().hex,
            at=now,
            kind=kind,
            operation=f"catalog.{call.operation.method}",
            outcome=outcome,
            principal=asker.principal.name if asker else "",
            actor=asker.actor if asker else "",
            share=clipped(call.operation.share),
            schema=clipped(call.operation.schema),
            table=clipped(call.operation.table),
            request_id=call.request_id,
            remote=call.remote,
            duration_ms=int((now - call.started_at).total_seconds() * 1000),
        )
