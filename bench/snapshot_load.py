"""What it takes to read a table's log, and to read one more commit of it, against deltalake.

Both engines run in processes of their own, which have read a small log before. In each round they read the
same log from its checkpoint on, one after the other; then a commit is added, and both take it in. Which goes
first alternates. Processor time is that of the whole process, whatever thread it went to. The engine is the
same code in the same kind of process whether the gateway is split or not.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from bench.engine import DELTALAKE, OWN, Taken, running_engine
from bench.logs import ADDS, COMMITS, REMOVES, STATS_BYTES, BenchLog, write_log
from bench.machine import describe_machine
from bench.plot import GROWTH, draw_growth

ROUNDS = 5
SMALL = 100
RESULTS = Path(__file__).parent / "results"
ENGINES = {"own": OWN, "deltalake": DELTALAKE}
LOAD, REFRESH = "load", "refresh"

# What each engine took for each operation, round by round.
Rounds = Mapping[str, Mapping[str, Sequence[Taken]]]


def main(sizes: Sequence[int] = tuple(COMMITS), rounds: int = ROUNDS) -> None:
    taken: dict[int, Rounds] = {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        write_log(scratch / "small", SMALL)
        for size in sizes:
            log = write_log(scratch / str(size), size)
            taken[size] = _measure(log, scratch / "small", rounds)
            print(f"{size:,} files done", flush=True)
    _report(taken, rounds)


def _measure(log: BenchLog, small: Path, rounds: int) -> Rounds:
    taken: dict[str, dict[str, list[Taken]]] = {
        operation: {name: [] for name in ENGINES} for operation in (LOAD, REFRESH)
    }
    for number in range(rounds):
        with ExitStack() as stack:
            engines = {
                name: stack.enter_context(running_engine(command)) for name, command in ENGINES.items()
            }
            names = list(engines) if number % 2 else list(engines)[::-1]
            for name in names:
                engines[name].run(LOAD, small)
            for name in names:
                taken[LOAD][name].append(engines[name].run(LOAD, log.directory))
            log.commit()
            for name in names:
                taken[REFRESH][name].append(engines[name].run(REFRESH))
                assert taken[REFRESH][name][-1].files == log.live, name
    return taken


def _report(taken: Mapping[int, Rounds], rounds: int) -> None:
    figures = {size: _figures(each) for size, each in taken.items()}
    lines = [
        "# Reading a log",
        "",
        f"{describe_machine()}; median of {rounds} interleaved rounds, processor time. Statistics of "
        f"{STATS_BYTES} bytes, 5% deletion vectors, 10% tombstones, a classic checkpoint, then "
        f"{', '.join(str(COMMITS.get(size, 10)) for size in taken)} commits of {ADDS} adds and {REMOVES} "
        "removes.",
        "",
        "| files | | own | deltalake | ratio |",
        "| ---: | --- | ---: | ---: | ---: |",
    ]
    for size, figure in figures.items():
        lines += [
            f"| {size:,} | cold | {_ms(figure['load']['own'])} | {_ms(figure['load']['deltalake'])} "
            f"| {figure['load']['own'] / figure['load']['deltalake']:.2f} |",
            f"| | one commit more | {_ms(figure['refresh']['own'])} | {_ms(figure['refresh']['deltalake'])} "
            f"| {figure['refresh']['deltalake'] / figure['refresh']['own']:.0f} times less |",
            f"| | cold, by the clock | {_ms(figure['wall']['own'])} | {_ms(figure['wall']['deltalake'])} "
            f"| {figure['wall']['own'] / figure['wall']['deltalake']:.2f} |",
            f"| | peak memory | {_mb(figure['peak']['own'])} | {_mb(figure['peak']['deltalake'])} "
            f"| {figure['peak']['own'] / figure['peak']['deltalake']:.2f} |",
        ]
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "snapshot_load.md").write_text(text)
    (RESULTS / "snapshot_load.json").write_text(json.dumps(figures, indent=2) + "\n")
    draw_growth(RESULTS, GROWTH)
    print(text)


def _figures(taken: Rounds) -> dict[str, dict[str, float]]:
    return {
        "load": {name: median(each.cpu for each in all_of) for name, all_of in taken[LOAD].items()},
        "refresh": {name: median(each.cpu for each in all_of) for name, all_of in taken[REFRESH].items()},
        "wall": {name: median(each.wall for each in all_of) for name, all_of in taken[LOAD].items()},
        "peak": {name: max(each.peak for each in all_of) for name, all_of in taken[REFRESH].items()},
    }


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms" if seconds >= 0.1 else f"{seconds * 1000:,.1f} ms"


def _mb(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"


if __name__ == "__main__":
    main()
