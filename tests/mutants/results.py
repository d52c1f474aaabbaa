"""Results of a run, one JSON object per line, their summary, and the comparison of two runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from tests.mutants.sample import Mutant


class MutantStatus(StrEnum):
    KILLED = "killed"
    TIMEOUT = "timeout"
    SURVIVED = "survived"
    NOT_COVERED = "not covered"
    ERROR = "error"

    @property
    def is_kill(self) -> bool:
        return self in (MutantStatus.KILLED, MutantStatus.TIMEOUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcome of a mutant; `by` is the first test that failed, or what went wrong."""

    id: str
    outcome: MutantStatus
    by: str
    tests: int
    seconds: float
    line: int


class Results:
    """A file of results; a later result of a mutant replaces an earlier one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        # The last line is incomplete if the run was killed while it wrote.
        entries = [json.loads(line) for line in lines if line.endswith("}")]
        self.by_id = {
            entry["id"]: Result(**(entry | {"outcome": MutantStatus(entry["outcome"])})) for entry in entries
        }

    def add(self, result: Result) -> None:
        self.by_id[result.id] = result
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(asdict(result))}\n")

    def is_done(self, mutant: Mutant) -> bool:
        """True if the mutant has a result; an error is tried again."""
        found = self.by_id.get(mutant.id)
        return found is not None and found.outcome is not MutantStatus.ERROR


def summarise(mutants: Sequence[Mutant], results: Mapping[str, Result]) -> Iterator[str]:
    """Yield the lines of a summary: counts per package, then every mutant that no test killed."""
    done = [(mutant, results[mutant.id]) for mutant in mutants if mutant.id in results]
    counts = Counter((mutant.package, result.outcome) for mutant, result in done)
    yield f"{'package':<20}" + "".join(f"{outcome:>13}" for outcome in MutantStatus)
    for package in sorted({mutant.package for mutant, _ in done}):
        yield f"{package:<20}" + "".join(f"{counts[package, outcome]:>13}" for outcome in MutantStatus)
    totals = Counter(result.outcome for _, result in done)
    yield f"{'total':<20}" + "".join(f"{totals[outcome]:>13}" for outcome in MutantStatus)
    kills = sum(result.outcome.is_kill for _, result in done)
    yield f"killed {kills} of {len(done)}; {len(mutants) - len(done)} of the sample have no result"
    for outcome in (
        MutantStatus.TIMEOUT,
        MutantStatus.SURVIVED,
        MutantStatus.NOT_COVERED,
        MutantStatus.ERROR,
    ):
        found = [(mutant, result) for mutant, result in done if result.outcome is outcome]
        if found:
            yield f"\n{outcome}:"
            yield from (describe(mutant, result) for mutant, result in found)


def compare(mutants: Sequence[Mutant], old: Mapping[str, Result], new: Mapping[str, Result]) -> Iterator[str]:
    """Yield the lines of a comparison: what one run kills and the other does not."""
    both = [mutant for mutant in mutants if mutant.id in old and mutant.id in new]
    lost = [
        mutant for mutant in both if old[mutant.id].outcome.is_kill and not new[mutant.id].outcome.is_kill
    ]
    won = [mutant for mutant in both if new[mutant.id].outcome.is_kill and not old[mutant.id].outcome.is_kill]
    kills = [sum(run[mutant.id].outcome.is_kill for mutant in both) for run in (old, new)]
    yield f"of {len(both)} mutants with both results, the first run kills {kills[0]}, the second {kills[1]}"
    for title, only, by in (("the first", lost, old), ("the second", won, new)):
        yield f"\nkilled by {title} only: {len(only)}"
        for mutant in only:
            yield describe(mutant, by[mutant.id])


def describe(mutant: Mutant, result: Result) -> str:
    change = f"{_one_line(mutant.before)} -> {_one_line(mutant.after)}"
    by = f"  [{_one_line(result.by)}]" if result.by else ""
    return f"{mutant.id} {mutant.file}:{result.line} {mutant.scope} {mutant.operator}: {change}{by}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
