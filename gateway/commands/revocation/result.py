"""What a revocation has done and what it has not, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway.commands.bearer import format_time
from gateway.commands.revocation.cache import Dropped
from gateway.commands.revocation.change import Change, to_text
from gateway.commands.revocation.cutting import Outcome
from gateway.commands.revocation.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    plan: Plan
    is_edited: bool
    dropped: Dropped
    outcomes: Sequence[Outcome]
    # Until when URLs of single files live, where some may be out.
    urls_until: datetime | None
    # Changes of the file that were not made.
    lacking: Sequence[Change]

    @property
    def done(self) -> bool:
        return not any(self._left())

    def lines(self) -> Iterator[str]:
        yield f"cache: {self.dropped.words}"
        if not self.outcomes:
            yield f"storages: none issues credentials for a table of {self.plan.recipient.name}"
        for outcome in self.outcomes:
            yield f"{outcome.storage} ({outcome.vendor}): {_state(outcome)}: {outcome.words}"
        if self.urls_until is not None:
            until = format_time(self.urls_until)
            yield f"URLs: those handed out for single files live until {until}, nothing ends them sooner"
        if self.lacking:
            yield f"to change where the configuration is kept:\n\n{to_text(self.lacking)}\n"

    def closing(self) -> str:
        name = self.plan.recipient.name
        if not self.done:
            cut = [outcome.storage for outcome in self.outcomes if outcome.done]
            parts = [f"cut off in: {', '.join(cut)}"] if cut else []
            return f"{name} is not cut off from everything: {'; '.join([*parts, *self._left()])}"
        if self.plan.keeps_access:
            return f"what was issued to {name} is cut off; {name} may ask for more"
        return f"{name} is cut off; to let it in again, remove `disabled` from its entry and keep `revokedAt`"

    def _left(self) -> Iterator[str]:
        if alive := [outcome.storage for outcome in self.outcomes if not outcome.done]:
            yield f"not cut off in: {', '.join(alive)}"
        if self.plan.not_asked:
            yield f"not asked: {', '.join(self.plan.not_asked)}"
        if self.urls_until is not None and self.urls_until > self.plan.asked_at:
            yield f"URLs live until {format_time(self.urls_until)}"
        if self.dropped.done is False:
            yield "not dropped from the cache"
        if self.lacking:
            yield f"not in the configuration: {', '.join(map(_missing, self.lacking))}"


def describe(plan: Plan, *, edit: bool) -> str:
    """Return what would be done."""
    asked = ", ".join(f"{one.entry.name} ({one.entry.vendor})" for one in plan.asked) or "none"
    lines = []
    if plan.changes:
        what = "to change in" if edit else "missing in"
        lines.append(f"{what} the configuration:\n\n{to_text(plan.changes)}\n")
    lines.append(f"to drop from the cache: what was issued to {plan.recipient.name}")
    lines.append(f"to cut off in storages: {asked}")
    lines += [f"  {one.entry.name} {one.consequence}" for one in plan.asked if one.consequence]
    if plan.not_asked:
        lines.append(
            f"not to be asked, although {plan.recipient.name} reaches it: {', '.join(plan.not_asked)}"
        )
    if plan.shared:
        names = ", ".join(plan.shared)
        lines.append(f"everybody's credentials are one in: {names}; other recipients have to ask again there")
    return "\n".join(lines)


def earlier(plan: Plan) -> str:
    name, moment = plan.recipient.name, format_time(plan.revoked_at)
    return (
        f"{name} is cut off since {moment}, which is kept; if it was let in after that, give --keep-access, "
        "which revokes what was issued until now and leaves it disabled"
    )


def _state(outcome: Outcome) -> str:
    return "cut off" if outcome.done else f"NOT cut off, lives until {format_time(outcome.lives_until)}"


def _missing(change: Change) -> str:
    return f"{' and '.join(change.values)} of {change.entry.name}"
