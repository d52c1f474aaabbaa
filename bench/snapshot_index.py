"""What an index of a log takes to make, against Delta's own snapshot, and what it saves who starts from it.

Spark makes both in one session, one after the other, after a small log: the index, with all that is written
for it, and the state of the table as Delta has it, which is written nowhere. The service is started anew for
each query, with the index and without. Memory is what a process has come to beyond what it had before.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.logs import COMMITS, FIRST_ID, STATS_BYTES, write_log
from bench.machine import describe_machine
from pipeline.session import SparkSettings, open_session
from tests.integration.pipeline.indexes import IndexedDisk
from tests.repository import ROOT

FILES = 1_000_000
SMALL = 20_000
ROUNDS = 3
BLOCK_ROWS = 8192
RESULTS = Path(__file__).parent / "results"
SETTINGS = SparkSettings(
    master="local[2]", conf={"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "16"}
)
QUERIES = {
    "one day's files of a level": ["day = '2024-01-01' AND level = 4"],
    "nine files by id": [f"id >= {FIRST_ID + 77_000_000} AND id < {FIRST_ID + 77_009_000}"],
    "all files": [],
}

Figures = Mapping[str, Mapping[str, Sequence[Mapping[str, float]]]]


def main(files: int = FILES, rounds: int = ROUNDS) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        spark = open_session(SETTINGS)
        small, large = IndexedDisk(spark, scratch / "small"), IndexedDisk(spark, scratch / "large")
        for disk, count in ((small, SMALL), (large, files)):
            disk.log_directory.rmdir()
            disk.table.rmdir()
            write_log(disk.table, count)
            disk.craft = disk.new_craft(block_rows=BLOCK_ROWS)
        built = {"index": _timed(lambda: asyncio.run(small.index()))}
        _delta(spark, small.table)
        built = {
            "delta": _timed(lambda: _delta(spark, large.table)),
            "index": _timed(lambda: asyncio.run(large.index())),
        }
        spark.stop()
        print(built, flush=True)
        started = _started(large.table, scratch / "large" / "state", rounds)
    _report(files, rounds, built, started)


def _delta(spark: Any, table: Path) -> int:
    """Have Delta make up its own state of a table, as it does for a first query."""
    log = spark._jvm.org.apache.spark.sql.delta.DeltaLog  # noqa: SLF001 -- there is no other way to it
    log.clearCache()
    found = log.forTable(spark._jsparkSession, str(table)).unsafeVolatileSnapshot()  # noqa: SLF001
    return int(found.allFiles().count())


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _started(table: Path, state: Path, rounds: int) -> Figures:
    found: dict[str, dict[str, list[Mapping[str, float]]]] = {
        name: {"index": [], "log": []} for name in QUERIES
    }
    for number in range(rounds):
        for name, hints in QUERIES.items():
            ways = {"index": str(state), "log": ""}
            for way in list(ways) if number % 2 else list(ways)[::-1]:
                found[name][way].append(_run(table, ways[way], hints))
    return found


def _run(table: Path, state: str, hints: Sequence[str]) -> Mapping[str, float]:
    command = [sys.executable, "-m", "bench.engine_indexed", str(table), state, *hints]
    answer = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    taken: Mapping[str, float] = json.loads(answer.stdout.splitlines()[-1])
    assert bool(taken["used"]) is bool(state), "the index was not used"
    return taken


def _report(files: int, rounds: int, built: Mapping[str, float], started: Figures) -> None:
    lines = [
        "# An index of a log",
        "",
        f"{describe_machine()}; {files:,} files with statistics of {STATS_BYTES} bytes, 5% deletion vectors, "
        f"a classic checkpoint, then {COMMITS.get(files, 10)} commits. Spark on local[2].",
        "",
        "| made by Spark | by the clock |",
        "| --- | ---: |",
        f"| the index: replayed, sorted, typed, written, its zones, its checksums | {built['index']:.1f} s |",
        f"| Delta's own snapshot: replayed, counted, written nowhere | {built['delta']:.1f} s |",
        "",
        f"The service from nothing, median of {rounds} rounds that alternate, each in a process of its own:",
        "",
        "| query | | from the index | from the log | ratio |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    figures = {name: {way: _medians(taken) for way, taken in ways.items()} for name, ways in started.items()}
    for name, ways in figures.items():
        for title, key, show in _ROWS:
            index, log = ways["index"][key], ways["log"][key]
            shown = f"{show(index)} | {show(log)} | {log / max(index, 1e-9):.1f}"
            lines.append(f"| {name if key == 'first_wall' else ''} | {title} | {shown} |")
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "snapshot_index.md").write_text(text)
    whole = {"files": files, "built": dict(built), "queries": figures}
    (RESULTS / "snapshot_index.json").write_text(json.dumps(whole, indent=2) + "\n")
    print(text)


def _medians(taken: Sequence[Mapping[str, float]]) -> dict[str, float]:
    found = {key: median(each[key] for each in taken) for key in taken[0] if key != "used"}
    return {**found, "memory": found["peak"] - found["before"]}


def _seconds(value: float) -> str:
    return f"{value * 1000:,.0f} ms" if value < 10 else f"{value:,.1f} s"


def _mb(value: float) -> str:
    return f"{value / 1e6:,.0f} MB"


_ROWS: Sequence[tuple[str, str, Callable[[float], str]]] = (
    ("first line", "first_wall", _seconds),
    ("first line, processor", "first_cpu", _seconds),
    ("whole answer, processor", "cpu", _seconds),
    ("memory", "memory", _mb),
)


if __name__ == "__main__":
    main()
