"""What a full query of a table on S3 takes through HTTP, with the S3 signer.

Cold is the first query of a gateway that has just started, with the reading of the log. Warm in memory is the
next one. Warm in Redis is a gateway that keeps no signatures itself and finds all of them there. Beside those
there are a bare aiohttp server, which streams the same bytes from its memory, and answers in gzip. The store,
Redis, gateway and client share the machine; processor time is that of the gateway's processes. Rounds are
interleaved.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from bench.bare_stream import streaming
from bench.lake import MODES, Lake, running_lake
from bench.logs import BenchLog, write_log
from bench.peers import origin_of
from bench.performance import write_performance
from bench.query_figures import RESULTS, Figures, Table, take, times_for, write_results
from bench.timed_query import CAPABILITIES, Question, ask
from tests.deployments import Deployment

ROUNDS = 3
SIZES = (10_000, 100_000, 1_000_000)
COLD, WARM, REDIS, GZIP = "cold", "warm in memory", "warm in Redis", "warm in memory, gzip"
BARE = "bare aiohttp"

IN_MEMORY = {"memory": "1GiB", "redis": "never"}
IN_REDIS = {"memory": 0, "redis": "always"}


def main(sizes: Sequence[int] = SIZES, rounds: int = ROUNDS) -> None:
    figures: dict[str, dict[int, Table]] = {name: {} for name in CAPABILITIES}
    with tempfile.TemporaryDirectory() as folder, running_lake(Path(folder)) as lake:
        for response_format, of_format in figures.items():
            for size in sizes:
                name = f"{response_format}{size}"
                log = write_log(Path(folder) / "logs" / name, size, vectors=response_format == "delta")
                lake.put(log, name)
                run = _Run(lake, Path(folder), log, lake.question(name, response_format))
                of_format[size] = run.measure(rounds)
                print(f"{response_format}, {size:,} files done", flush=True)
    write_results("url_query", "A full query of a table on S3", figures, _rows, rounds)
    write_performance(RESULTS)


class _Run:
    """All peers over one table in one format."""

    def __init__(self, lake: Lake, scratch: Path, log: BenchLog, question: Question) -> None:
        self._lake = lake
        self._scratch = scratch / log.directory.name
        self._log = log
        self._question = question
        self._times = times_for(log.live)
        states = (COLD, WARM, REDIS, GZIP)
        self._figures = {name: Figures() for name in (*(f"{m}, {s}" for m in MODES for s in states), BARE)}

    def measure(self, rounds: int) -> Table:
        self._scratch.mkdir()
        body = self._scratch / "body"
        with ExitStack() as stack:
            bare: tuple[str, int] | None = None
            for number in range(rounds):
                for mode in list(MODES) if number % 2 else list(MODES)[::-1]:
                    self._measure_mode(mode, number, body)
                bare = bare or stack.enter_context(streaming(body))
                self._take(BARE, bare[0], [bare[1]], self._question, self._times)
        return self._figures

    def _measure_mode(self, mode: str, number: int, body: Path) -> None:
        name, folder = self._log.directory.name, self._scratch / f"{mode} {number}"
        with self._lake.gateway(mode, folder / "memory", [name], IN_MEMORY) as gateway:
            self._ask(mode, COLD, gateway, 1)
            self._ask(mode, WARM, gateway, self._times)
            self._ask(mode, GZIP, gateway, self._times)
            if not body.exists():
                ask(origin_of(gateway), self._question, body)
        with self._lake.gateway(mode, folder / "redis", [name], IN_REDIS) as gateway:
            ask(origin_of(gateway), self._question)
            self._ask(mode, REDIS, gateway, self._times)

    def _ask(self, mode: str, state: str, gateway: Deployment, times: int) -> None:
        encoding = "gzip" if state == GZIP else "identity"
        question = self._lake.question(
            self._log.directory.name, self._question.response_format, encoding=encoding
        )
        pids = [server.process.pid for server in gateway.processes.values()]
        self._take(f"{mode}, {state}", origin_of(gateway), pids, question, times)

    def _take(self, name: str, origin: str, pids: list[int], question: Question, times: int) -> None:
        take(self._figures[name], origin, pids, question, live=self._log.live, times=times)


def _rows(table: Table) -> Iterator[str]:
    yield f"| | CPU a file | of {BARE} | first line | in all | body | peak memory |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    bare = median(table[BARE].cpu_us)
    for name, figures in table.items():
        cpu = median(figures.cpu_us)
        first, whole = median(figures.first_ms), median(figures.whole_s)
        yield (
            f"| {name} | {cpu:.2f} us | {cpu / bare:.1f} | {first:,.0f} ms | {whole:.2f} s "
            f"| {figures.body_mb:,.0f} MB | {max(figures.peak_mb):,.0f} MB |"
        )


if __name__ == "__main__":
    main()
