"""What it takes to find the one file in a hundred that a predicate asks for, in process and through HTTP.

By statistics: a range of ids, out of the JSON of each file. By partition: one day of a hundred. Cold is the
first predicate of a snapshot, warm the next one. The peer of a cold one is polars told to decode exactly what
is needed and to filter, of a warm one polars filtering columns that have their types already.
"""

from __future__ import annotations

import json
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

import polars as pl

from bench.engine_own import OwnEngine
from bench.logs import FIRST_ID, ROWS_PER_FILE, BenchLog, write_log
from bench.machine import describe_machine
from bench.peers import PREFIX, cpu_seconds, origin_of
from bench.plot import GROWTH, draw_growth
from bench.query_figures import HEAD_LINES
from bench.snapshot_query import MODES, running_gateway
from bench.timed_query import Question, ask
from gateway.services.snapshot.predicate.hints import parse_hints
from gateway.services.snapshot.predicate.prune import find_kept
from gateway.services.snapshot.state.snapshot import Snapshot

SIZES = (10_000, 100_000, 1_000_000)
ROUNDS = 3
WARM_TIMES = 5
RESULTS = Path(__file__).parent / "results"
STATISTICS, PARTITION = "by statistics", "by partition"
COLD, WARM = "cold", "warm"
DAY = "2024-01-02"
# What is asked for and what it is measured beside, by what the figure is called.
Seconds = dict[str, list[float]]


def main(sizes: Sequence[int] = SIZES, rounds: int = ROUNDS) -> None:
    figures: dict[int, dict[str, float]] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            log = write_log(Path(folder) / "tables" / "files", size)
            seconds: Seconds = {}
            for number in range(rounds):
                _measure_engine(log, seconds)
                for name in MODES:
                    _measure_gateway(name, Path(folder) / f"{name} {number}", log, seconds)
            figures[size] = {name: median(taken) for name, taken in seconds.items()}
        print(f"{size:,} files done", flush=True)
    _report(figures, rounds)


def _hints(size: int) -> Mapping[str, str]:
    low, high = _ids(size)
    return {STATISTICS: f"id >= {low} AND id < {high}", PARTITION: f"day = '{DAY}'"}


def _ids(size: int) -> tuple[int, int]:
    """Return the bounds of a hundredth of the ids, from the middle of them on."""
    low = FIRST_ID + size // 2 * ROWS_PER_FILE
    return low, low + size // 100 * ROWS_PER_FILE


def _measure_engine(log: BenchLog, seconds: Seconds) -> None:
    engine = OwnEngine()
    try:
        engine.load(str(log.directory))
        for kind in _PEERS:
            _measure_kind(engine.snapshot(), kind, log.files, seconds)
    finally:
        engine.close()


def _measure_kind(snapshot: Snapshot, kind: str, size: int, seconds: Seconds) -> None:
    hint, decode, test = _hints(size)[kind], _PEERS[kind], _test_of(kind, size)

    def own() -> int:
        kept = find_kept(snapshot.files, parse_hints([hint], "", snapshot.metadata))
        assert kept is not None
        return int((kept & snapshot.files.live if snapshot.files.live is not None else kept).sum())

    def typed() -> int:
        return int(test(columns).sum())

    found = _timed(seconds, f"{kind}, {COLD}", own)
    began = time.perf_counter()
    columns = decode(snapshot.files.rows(0, snapshot.files.height))
    expected = int(test(columns).sum())
    seconds.setdefault(f"{kind}, {COLD}, polars", []).append(time.perf_counter() - began)
    if found != expected:
        raise RuntimeError(f"{kind}: {found:,} files are kept, and {expected:,} should be")
    for _ in range(WARM_TIMES):
        _timed(seconds, f"{kind}, {WARM}", own)
        _timed(seconds, f"{kind}, {WARM}, polars", typed)


def _timed(seconds: Seconds, name: str, work: Callable[[], int]) -> int:
    began = time.perf_counter()
    result = work()
    seconds.setdefault(name, []).append(time.perf_counter() - began)
    return result


def _decode_ids(rows: pl.DataFrame) -> pl.DataFrame:
    bounds = pl.Struct({"id": pl.Int64})
    stats = pl.col("stats").str.json_decode(pl.Struct({"minValues": bounds, "maxValues": bounds}))
    return rows.select(
        low=stats.struct.field("minValues").struct.field("id"),
        high=stats.struct.field("maxValues").struct.field("id"),
    )


def _decode_days(rows: pl.DataFrame) -> pl.DataFrame:
    pairs = pl.col("partitionValues").cast(pl.List(pl.Struct({"key": pl.String, "value": pl.String})))
    return rows.select(day=pairs.list.first().struct.field("value"))


_PEERS: Mapping[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    STATISTICS: _decode_ids,
    PARTITION: _decode_days,
}


def _test_of(kind: str, size: int) -> Callable[[pl.DataFrame], pl.Series]:
    if kind == PARTITION:
        return lambda columns: columns["day"] == DAY
    low, high = _ids(size)
    return lambda columns: (columns["high"] >= low) & (columns["low"] < high)


def _measure_gateway(name: str, folder: Path, log: BenchLog, seconds: Seconds) -> None:
    token = secrets.token_urlsafe(32)
    path = f"{PREFIX}/shares/share/schemas/default/tables/files/query"
    with running_gateway(name, folder, log, token) as gateway:
        pids = [server.process.pid for server in gateway.processes.values()]
        origin = origin_of(gateway)

        def question(**asked: object) -> Question:
            return Question(path=path, token=token, response_format="delta", asked=json.dumps(asked))

        # Reads the log.
        ask(origin, question(limitHint=1))
        for kind, hint in _hints(log.files).items():
            wanted = question(predicateHints=[hint])
            for state in (COLD, *[WARM] * WARM_TIMES):
                before = cpu_seconds(pids)
                answered = ask(origin, wanted)
                if not HEAD_LINES < answered.lines < log.live // 50:
                    raise RuntimeError(f"{kind}: {answered.lines:,} lines came")
                label = f"{kind}, {state}, {name}"
                seconds.setdefault(f"{label}, first line", []).append(answered.first_line)
                seconds.setdefault(f"{label}, in all", []).append(answered.whole)
                seconds.setdefault(f"{label}, CPU", []).append(cpu_seconds(pids) - before)


def _report(figures: Mapping[int, Mapping[str, float]], rounds: int) -> None:
    lines = [
        "# A predicate that keeps one file in a hundred",
        "",
        f"{describe_machine()}; median of {rounds} rounds, warm ones of {rounds * WARM_TIMES}.",
        "",
        "| files | | cold | polars beside it | ratio | warm | polars on typed columns | ratio |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for size, figure in figures.items():
        lines += [_engine_row(size, kind, figure) for kind in _PEERS]
    lines += [
        "",
        "Through HTTP, with the answer's lines and their signatures:",
        "",
        "| files | | | cold, first line | cold, in all | warm, first line | warm, in all | warm, CPU |",
        "| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for size, figure in figures.items():
        lines += [_gateway_row(size, kind, name, figure) for kind in _PEERS for name in MODES]
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "snapshot_predicate.md").write_text(text)
    (RESULTS / "snapshot_predicate.json").write_text(json.dumps(figures, indent=2) + "\n")
    draw_growth(RESULTS, GROWTH)
    print(text)


def _engine_row(size: int, kind: str, figure: Mapping[str, float]) -> str:
    cells = []
    for state in (COLD, WARM):
        own, peer = figure[f"{kind}, {state}"], figure[f"{kind}, {state}, polars"]
        cells += [_ms(own), _ms(peer), f"{own / peer:.2f}"]
    return f"| {size:,} | {kind} | {' | '.join(cells)} |"


def _gateway_row(size: int, kind: str, name: str, figure: Mapping[str, float]) -> str:
    columns = [(COLD, "first line"), (COLD, "in all"), (WARM, "first line"), (WARM, "in all"), (WARM, "CPU")]
    cells = [_ms(figure[f"{kind}, {state}, {name}, {what}"]) for state, what in columns]
    return f"| {size:,} | {kind} | {name} | {' | '.join(cells)} |"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms"


if __name__ == "__main__":
    main()
