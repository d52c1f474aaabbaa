"""What a full query takes through HTTP, with the local signer and without compression.

Cold is the first query of a server that has just started, with the reading of the log; warm is the next one.
Beside the gateway in one process and in five there are a bare aiohttp server, which streams the same bytes
from its memory, and deltalake, which reads the same log and lists the files. Rounds are interleaved. Tables
of the parquet format have no deletion vectors; those of the delta format have one for every twentieth file.
"""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.bare_stream import streaming
from bench.engine import DELTALAKE, running_engine
from bench.engine_worker import peak_memory
from bench.logs import BenchLog, write_log
from bench.machine import describe_machine
from bench.peers import PREFIX, cpu_seconds, origin_of
from bench.plot import GROWTH, draw_growth
from bench.timed_query import CAPABILITIES, Answered, Question, ask
from gateway.commands.bearer import hash_of
from tests.deployments import Deployment, all_in_one, split

ROUNDS = 3
SIZES = (10_000, 100_000, 1_000_000)
RESULTS = Path(__file__).parent / "results"
MODES = {"all in one": all_in_one, "split": split}
BARE, LISTING = "bare aiohttp", "deltalake, listing"
COLD, WARM = "cold", "warm"
# Protocol and metadata.
HEAD_LINES = 2
MEMORY = 4 * 1024**3
ENOUGH_FILES = 100_000


@dataclass(slots=True, kw_only=True)
class Figures:
    """What one server took, round by round."""

    cpu_us: list[float] = field(default_factory=list)
    first_ms: list[float] = field(default_factory=list)
    whole_s: list[float] = field(default_factory=list)
    peak_mb: list[float] = field(default_factory=list)

    def to_json(self) -> dict[str, float | None]:
        columns = {"cpu_us": self.cpu_us, "first_ms": self.first_ms, "whole_s": self.whole_s}
        peak = max(self.peak_mb) if self.peak_mb else None
        return {name: median(each) if each else None for name, each in columns.items()} | {"peak_mb": peak}


Table = Mapping[str, Figures]


def main(sizes: Sequence[int] = SIZES, rounds: int = ROUNDS) -> None:
    figures: dict[str, dict[int, Table]] = {name: {} for name in CAPABILITIES}
    for response_format, of_format in figures.items():
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                run = _Run(Path(folder), size, response_format)
                of_format[size] = run.measure(rounds)
            print(f"{response_format}, {size:,} files done", flush=True)
    _report(figures, rounds)


class _Run:
    """All peers over one table in one format."""

    def __init__(self, scratch: Path, size: int, response_format: str) -> None:
        self._scratch = scratch
        # The system counts processor time in hundredths of a second: too coarse for one short answer.
        self._times = max(1, ENOUGH_FILES // size)
        self._log = write_log(scratch / "tables" / "files", size, vectors=response_format == "delta")
        self._question = Question(
            path=f"{PREFIX}/shares/share/schemas/default/tables/files/query",
            token=secrets.token_urlsafe(32),
            response_format=response_format,
        )
        gateways = [f"{name}, {state}" for name in MODES for state in (COLD, WARM)]
        self._figures: dict[str, Figures] = {name: Figures() for name in (*gateways, BARE, LISTING)}

    def measure(self, rounds: int) -> Table:
        body = self._scratch / "body"
        with ExitStack() as stack:
            bare: tuple[str, int] | None = None
            for number in range(rounds):
                for name in list(MODES) if number % 2 else list(MODES)[::-1]:
                    self._measure_gateway(name, f"{name} {number}", body)
                bare = bare or stack.enter_context(streaming(body))
                self._take(BARE, bare[0], [bare[1]], self._times)
                self._measure_listing()
        return self._figures

    def _measure_gateway(self, name: str, folder: str, body: Path) -> None:
        with running_gateway(name, self._scratch / folder, self._log, self._question.token) as gateway:
            pids = [server.process.pid for server in gateway.processes.values()]
            self._take(f"{name}, {COLD}", origin_of(gateway), pids, 1)
            self._take(f"{name}, {WARM}", origin_of(gateway), pids, self._times)
            if not body.exists():
                ask(origin_of(gateway), self._question, body)

    def _take(self, name: str, origin: str, pids: list[int], times: int) -> None:
        figures = self._figures[name]
        before = cpu_seconds(pids)
        for _ in range(times):
            answered = ask(origin, self._question)
            self._require_whole(answered, name)
            figures.first_ms.append(answered.first_line * 1e3)
            figures.whole_s.append(answered.whole)
        figures.cpu_us.append((cpu_seconds(pids) - before) / times / self._log.live * 1e6)
        figures.peak_mb.append(sum(map(peak_memory, pids)) / 1e6)

    def _measure_listing(self) -> None:
        figures = self._figures[LISTING]
        with running_engine(DELTALAKE) as engine:
            taken = engine.run("load", self._log.directory)
        figures.cpu_us.append(taken.cpu / taken.files * 1e6)
        figures.whole_s.append(taken.wall)
        figures.peak_mb.append(taken.peak / 1e6)

    def _require_whole(self, answered: Answered, name: str) -> None:
        if answered.lines != self._log.live + HEAD_LINES:
            raise RuntimeError(f"{name} gave {answered.lines:,} lines for {self._log.live:,} files")


@contextmanager
def running_gateway(name: str, folder: Path, log: BenchLog, token: str) -> Iterator[Deployment]:
    """Start a gateway that shares one table, by the name of its mode."""
    tables = [{"name": "files", "location": f"file://{log.directory}"}]
    settings = {
        "version": 1,
        "shares": [{"name": "share", "schemas": [{"name": "default", "tables": tables}]}],
        "recipients": [{"name": "bench", "tokens": [{"hash": hash_of(token)}], "shares": "*"}],
        "storages": [{"name": "disk", "prefix": f"file://{log.directory.parent}", "vendor": "local"}],
        "limits": {"rate": {"requestsPerSecond": 1_000_000, "burst": 1_000_000}},
        "snapshots": {"memory": MEMORY},
    }
    with MODES[name](folder, settings) as deployment:
        yield deployment


def _report(figures: Mapping[str, Mapping[int, Table]], rounds: int) -> None:
    lines = [
        "# A full query",
        "",
        f"{describe_machine()}; median of {rounds} interleaved rounds, the most of them for memory. Client "
        "and servers share the machine. Processor time is that of all processes of a server.",
    ]
    for response_format, tables in figures.items():
        for size, table in tables.items():
            lines += ["", f"## {size:,} files, {response_format} format", "", *_rows(table)]
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "snapshot_query.md").write_text(text)
    (RESULTS / "snapshot_query.json").write_text(json.dumps(_to_json(figures), indent=2) + "\n")
    draw_growth(RESULTS, GROWTH)
    print(text)


def _rows(table: Table) -> Iterator[str]:
    yield f"| | CPU a file | of {BARE} | of {LISTING} | first line | in all | peak memory |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    bare, listing = (median(table[name].cpu_us) for name in (BARE, LISTING))
    for name, figures in table.items():
        cpu = median(figures.cpu_us)
        first = f"{median(figures.first_ms):,.0f} ms" if figures.first_ms else ""
        yield (
            f"| {name} | {cpu:.2f} us | {cpu / bare:.1f} | {cpu / listing:.2f} | {first} "
            f"| {median(figures.whole_s):.2f} s | {max(figures.peak_mb):,.0f} MB |"
        )


def _to_json(figures: Mapping[str, Mapping[int, Table]]) -> dict[str, object]:
    return {
        response_format: {
            size: {name: each.to_json() for name, each in table.items()} for size, table in tables.items()
        }
        for response_format, tables in figures.items()
    }


if __name__ == "__main__":
    main()
