"""A revocation as one line of JSON, for whoever keeps such lines."""

from __future__ import annotations

import secrets
from datetime import datetime

from gateway.commands.bearer import format_time
from gateway.commands.revocation.cutting import Outcome
from gateway.commands.revocation.result import Result
from gateway.commands.safe_json import to_safe_json
from gateway.domain.audit import SCHEMA_VERSION


def to_line(result: Result) -> str:
    """Return the event, with the names that the audit log's events have."""
    plan = result.plan
    return to_safe_json(
        {
            "id": secrets.token_hex(16),
            "schema_version": SCHEMA_VERSION,
            "at": format_time(plan.asked_at),
            "kind": "revocation",
            "operation": "revoke",
            "outcome": "done" if result.done else "incomplete",
            "principal": plan.recipient.name,
            "revoked_at": format_time(plan.revoked_at),
            "keeps_access": plan.keeps_access,
            "configuration_changed": result.is_edited,
            "configuration_lacks": [f"{one.section}: {one.entry.name}" for one in result.lacking],
            "cache_dropped": result.dropped.done,
            "storages": [_storage(outcome) for outcome in result.outcomes],
            "storages_not_asked": list(plan.not_asked),
            "urls_live_until": _time(result.urls_until),
        },
        indent=None,
    )


def _storage(outcome: Outcome) -> dict[str, object]:
    until = None if outcome.done else outcome.lives_until
    return {"name": outcome.storage, "cut_off": outcome.done, "lives_until": _time(until)}


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else format_time(moment)
