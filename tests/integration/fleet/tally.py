"""What was sent and what became of it: the table that a scenario prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

OUTCOMES = ("answered", "failed", "lost", "wrong")


@dataclass(frozen=True, slots=True)
class Setback:
    """An attempt that came to nothing, and was made again unless its request failed by it."""

    operation: str
    reason: str
    began_at: float
    ended_at: float
    says_when: bool
    # By which Envoy and the services know it; empty where nothing was answered at all.
    request_id: str


@dataclass
class Tally:
    """Counts requests by operation; each that was sent has one outcome in the end."""

    sent: Counter[str] = field(default_factory=Counter)
    outcomes: dict[str, Counter[str]] = field(
        default_factory=lambda: {outcome: Counter() for outcome in OUTCOMES}
    )
    retried: Counter[str] = field(default_factory=Counter)
    setbacks: list[Setback] = field(default_factory=list)
    # What was wrong, in words.
    faults: list[str] = field(default_factory=list)
    under_way: Counter[str] = field(default_factory=Counter)
    # What is told beside the table.
    notes: list[str] = field(default_factory=list)

    def count(self, outcome: str, operations: Collection[str] | None = None) -> int:
        counter = self.sent if outcome == "sent" else self.outcomes[outcome]
        return sum(number for name, number in counter.items() if operations is None or name in operations)

    def reasons(self, operations: Collection[str] | None = None) -> dict[str, int]:
        """Return why attempts came to nothing, and how often."""
        return dict(
            Counter(
                setback.reason
                for setback in self.setbacks
                if operations is None or setback.operation in operations
            )
        )

    def begun_after(self, moment: float) -> Sequence[Setback]:
        """Return the setbacks of attempts that were not yet under way then."""
        return [setback for setback in self.setbacks if setback.began_at > moment]

    def noticed_until(self, moment: float) -> float:
        """Return how long after a moment the last attempt came to nothing, in seconds."""
        return max(0, *(setback.ended_at - moment for setback in self.setbacks), 0)

    def rows(self) -> Iterable[Sequence[object]]:
        for name in sorted(self.sent):
            outcomes = [self.outcomes[outcome][name] for outcome in OUTCOMES]
            reasons = ", ".join(f"{count} x {reason}" for reason, count in self.reasons({name}).items())
            yield [name, self.sent[name], *outcomes, self.retried[name], reasons]

    def totals(self) -> Sequence[object]:
        outcomes = [self.count(outcome) for outcome in OUTCOMES]
        reasons = ", ".join(f"{count} x {reason}" for reason, count in self.reasons().items())
        return ["all", self.count("sent"), *outcomes, self.retried.total(), reasons]


HEADER = ("", "sent", *OUTCOMES, "retried", "what attempts met with")


def format_table(rows: Sequence[Sequence[object]]) -> str:
    """Return rows as text, numbers to the right."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = []
    for row in texts:
        first, *middle, last = row
        numbers = (cell.rjust(width) for cell, width in zip(middle, widths[1:-1], strict=True))
        lines.append("  ".join([first.ljust(widths[0]), *numbers, last]).rstrip())
    return "\n".join(lines)
