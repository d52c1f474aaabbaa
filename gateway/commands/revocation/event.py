"""A revocation as one line of JSON, for whoever keeps such lines."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence

from gateway.commands.bearer import format_time
from gateway.commands.revocation.cutting import Outcome
from gateway.commands.revocation.plan import Plan
from gateway.domain.audit import SCHEMA_VERSION


def to_line(plan: Plan, outcomes: Sequence[Outcome], *, is_edited: bool, is_dropped: bool) -> str:
    """Return the event, with the names that the audit log's events have."""
    done = is_dropped and all(outcome.done for outcome in outcomes)
    return json.dumps(
        {
            "id": secrets.token_hex(16),
            "schema_version": SCHEMA_VERSION,
            "at": format_time(plan.revoked_at),
            "kind": "revocation",
            "operation": "revoke",
            "outcome": "done" if done else "incomplete",
            "principal": plan.recipient.name,
            "keeps_access": plan.keeps_access,
            "configuration_changed": is_edited,
            "cache_dropped": is_dropped,
            "storages": [_storage(outcome) for outcome in outcomes],
        },
        ensure_ascii=False,
    )


def _storage(outcome: Outcome) -> dict[str, object]:
    until = None if outcome.done else format_time(outcome.lives_until)
    return {"name": outcome.storage, "cut_off": outcome.done, "lives_until": until}
