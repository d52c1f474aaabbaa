"""The report of a comparison, for people and for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from gateway.adapters.json_log import REDACTED, redact
from gateway.commands.comparison.difference import Finding, Weight
from gateway.commands.comparison.files import counted
from gateway.commands.comparison.values import MISSING

_MAX_VALUE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was found, with the endpoints it was found between."""

    old: str
    new: str
    tables: int
    # Tables that neither server lets this program read.
    unread: int
    findings: tuple[Finding, ...]
    # Never printed, whatever a server says.
    secrets: tuple[str, ...] = field(repr=False)

    @property
    def differences(self) -> int:
        return sum(finding.weight is Weight.DIFFERENCE for finding in self.findings)

    def to_text(self) -> str:
        return "\n".join([f"old: {self.old}", f"new: {self.new}", "", *self._body(), self.summary()])

    def to_json(self) -> str:
        grouped = {
            key: [self._record(finding) for finding in self.findings if finding.weight is weight]
            for key, weight in _GROUPS.items()
        }
        counts = {"tables": self.tables, "unread": self.unread}
        return json.dumps({"old": self.old, "new": self.new, **counts, **grouped}, indent=2)

    def summary(self) -> str:
        unread = f"{self.unread} could not be read from either server, " if self.unread else ""
        return f"{counted(self.tables, 'table')} compared, {unread}{counted(self.differences, 'difference')}"

    def _body(self) -> Iterator[str]:
        subjects: dict[str, list[str]] = {}
        for finding in self.findings:
            if finding.weight is not Weight.ONLY_IN_NEW:
                subjects.setdefault(finding.subject, []).append(self._line(finding))
        for subject, lines in subjects.items():
            yield self._clean(subject)
            yield from lines
            yield ""
        added = Counter(
            (finding.subject.split()[0], finding.what)
            for finding in self.findings
            if finding.weight is Weight.ONLY_IN_NEW
        )
        if added:
            yield "only in new, which is no difference to a client"
            for (kind, what), count in sorted(added.items()):
                yield self._clean(f"  {what} ({counted(count, kind)})")
            yield ""

    def _line(self, finding: Finding) -> str:
        parts = []
        if finding.old is not MISSING or finding.new is not MISSING:
            parts.append(f"{_shown(finding.old)} in old, {_shown(finding.new)} in new")
        if finding.detail:
            parts.append(f"({finding.detail})" if parts else finding.detail)
        note = "note: " if finding.weight is Weight.NOTE else ""
        return self._clean(f"  {note}{finding.what}: {' '.join(parts)}")

    def _record(self, finding: Finding) -> dict[str, object]:
        values = {"old": finding.old, "new": finding.new, "detail": finding.detail or MISSING}
        record = {"subject": finding.subject, "what": finding.what, **values}
        return {key: self._cleaned(value) for key, value in record.items() if value is not MISSING}

    def _cleaned(self, value: object) -> object:
        if isinstance(value, str):
            return self._clean(value)
        if isinstance(value, Decimal):
            return float(value)
        if isinstance(value, Mapping):
            return {self._clean(str(key)): self._cleaned(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [self._cleaned(part) for part in value]
        return value

    def _clean(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, REDACTED)
        return printable(redact(text))


def printable(text: str) -> str:
    """Return a text that cannot move the cursor of whoever reads what a server said."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


_GROUPS: Final = {
    "differences": Weight.DIFFERENCE,
    "notes": Weight.NOTE,
    "onlyInNew": Weight.ONLY_IN_NEW,
}


def _shown(value: object) -> str:
    if value is MISSING:
        return "missing"
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}..."
