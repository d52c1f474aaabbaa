"""What was found out about the storages, as a table for people and as JSON for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from gateway.commands.bearer import format_time
from gateway.commands.safe_json import to_safe_json
from gateway.commands.verification.check import Mark, Row
from gateway.commands.verification.inspection import Inspection

_TITLES: Final = ("storage", "vendor", "check", "expected", "seen", "verdict")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A storage and what was found out about it; None where it issues no credentials."""

    name: str
    vendor: str
    prefix: str
    inspection: Inspection | None


@dataclass(frozen=True, slots=True)
class Report:
    storages: Sequence[Verified]

    @property
    def exit_status(self) -> int:
        """Return 0 only when something was tried and all of it was proved."""
        marks = self._marks()
        if marks[Mark.BREACH]:
            return 1
        return 0 if marks[Mark.PROVED] and not marks[Mark.NOT_PROVED] else 2

    def to_text(self) -> str:
        lines = [*self._table(), *self._details(), "", self._summary()]
        return "\n".join(lines)

    def to_json(self) -> str:
        return to_safe_json(
            {
                "storages": [_to_dict(one) for one in self.storages],
                "proved": self._marks()[Mark.PROVED],
                "breaches": self._marks()[Mark.BREACH],
                "notProved": self._marks()[Mark.NOT_PROVED],
            }
        )

    def _marks(self) -> Counter[Mark]:
        return Counter(row.mark for one in self.storages if one.inspection for row in one.inspection.rows)

    def _table(self) -> Iterator[str]:
        cells = [
            (one.name, one.vendor, row.check, row.expected, row.seen, row.mark.value)
            for one in self.storages
            for row in (one.inspection.rows if one.inspection else ())
        ]
        if not cells:
            return
        widths = [max(map(len, column)) for column in zip(_TITLES, *cells, strict=True)]
        for line in (_TITLES, tuple("-" * width for width in widths), *cells):
            yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()

    def _details(self) -> Iterator[str]:
        for one in self.storages:
            yield ""
            if one.inspection is None:
                yield f"{one.name}: its vendor {one.vendor} issues no credentials, so nothing was tried"
                continue
            if one.inspection.expires_at is not None:
                until = format_time(one.inspection.expires_at)
                yield f"{one.name}: tried on {one.inspection.ground}; the credential lives until {until}"
            for (mark, detail), checks in _by_cause(one.inspection.rows).items():
                yield f"{one.name}: {mark.value}: {', '.join(checks)}{': ' if detail else ''}{detail}"
            for note in one.inspection.notes:
                yield f"{one.name}: {note}"

    def _summary(self) -> str:
        marks = self._marks()
        total = sum(marks.values())
        if not total:
            return "nothing was verified: no storage of this configuration issues credentials"
        parts = [f"{marks[Mark.PROVED]} of {total} proved"]
        if marks[Mark.BREACH]:
            parts.append(f"{marks[Mark.BREACH]} BREACHED: share nothing from there until that is put right")
        if marks[Mark.NOT_PROVED]:
            parts.append(f"{marks[Mark.NOT_PROVED]} not proved")
        return ", ".join(parts)


def _by_cause(rows: Sequence[Row]) -> dict[tuple[Mark, str], list[str]]:
    """Return the checks that were not proved, by verdict and what is said of it: one cause may fail many."""
    causes: dict[tuple[Mark, str], list[str]] = {}
    for row in rows:
        if row.mark is not Mark.PROVED:
            causes.setdefault((row.mark, row.detail), []).append(row.check)
    return causes


def _to_dict(one: Verified) -> dict[str, object]:
    head: dict[str, object] = {"name": one.name, "vendor": one.vendor, "prefix": one.prefix}
    if one.inspection is None:
        return head | {"issuesCredentials": False}
    expires_at = one.inspection.expires_at
    return head | {
        "issuesCredentials": True,
        "triedOn": one.inspection.ground,
        "expiresAt": format_time(expires_at) if expires_at else None,
        "checks": [asdict(row) for row in one.inspection.rows],
        "notes": list(one.inspection.notes),
    }
