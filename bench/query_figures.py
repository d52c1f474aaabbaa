"""What servers took for full queries: figures round by round, and the results that are made of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.engine_worker import peak_memory
from bench.machine import describe_machine
from bench.peers import cpu_seconds
from bench.timed_query import Question, ask

RESULTS = Path(__file__).parent / "results"
# Protocol and metadata.
HEAD_LINES = 2
# The system counts processor time in hundredths of a second: too coarse for one short answer.
_ENOUGH_FILES = 100_000


@dataclass(slots=True, kw_only=True)
class Figures:
    """What one server took, round by round."""

    cpu_us: list[float] = field(default_factory=list)
    first_ms: list[float] = field(default_factory=list)
    whole_s: list[float] = field(default_factory=list)
    peak_mb: list[float] = field(default_factory=list)
    body_mb: float = 0.0

    def to_json(self) -> dict[str, float | None]:
        columns = {"cpu_us": self.cpu_us, "first_ms": self.first_ms, "whole_s": self.whole_s}
        medians = {name: median(values) if values else None for name, values in columns.items()}
        return medians | {"peak_mb": max(self.peak_mb, default=None), "body_mb": self.body_mb}


# By the name of the server and its state.
Table = Mapping[str, Figures]
# By response format and number of files.
Tables = Mapping[str, Mapping[int, Table]]


def times_for(live: int) -> int:
    """Return how often a table with so many files is asked for to be measured once."""
    return max(1, _ENOUGH_FILES // live)


def take(
    figures: Figures, origin: str, pids: Sequence[int], question: Question, *, live: int, times: int
) -> None:
    """Ask a server for a whole table and keep what that took of its processes."""
    before = cpu_seconds(list(pids))
    for _ in range(times):
        answered = ask(origin, question)
        if answered.lines != live + HEAD_LINES:
            raise RuntimeError(f"{origin} gave {answered.lines:,} lines for {live:,} files")
        figures.first_ms.append(answered.first_line * 1e3)
        figures.whole_s.append(answered.whole)
        figures.body_mb = answered.size / 1e6
    figures.cpu_us.append((cpu_seconds(list(pids)) - before) / times / live * 1e6)
    figures.peak_mb.append(sum(map(peak_memory, pids)) / 1e6)


def write_results(
    name: str, title: str, tables: Tables, rows: Callable[[Table], Iterable[str]], rounds: int
) -> None:
    """Write a benchmark's results as a page and as data, and print the page."""
    lines = [
        f"# {title}",
        "",
        f"{describe_machine()}; median of {rounds} interleaved rounds, the most of them for memory. All "
        "servers and the client share the machine. Processor time is that of all processes of a gateway.",
    ]
    for response_format, by_size in tables.items():
        for size, table in by_size.items():
            lines += ["", f"## {size:,} files, {response_format} format", "", *rows(table)]
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text)
    (RESULTS / f"{name}.json").write_text(json.dumps(_to_json(tables), indent=2) + "\n")
    print(text)


def _to_json(tables: Tables) -> dict[str, object]:
    return {
        response_format: {
            size: {name: figures.to_json() for name, figures in table.items()}
            for size, table in by_size.items()
        }
        for response_format, by_size in tables.items()
    }
