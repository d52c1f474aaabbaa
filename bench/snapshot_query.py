"""What a full query takes through HTTP, with the local signer and without compression.

Cold is the first query of a server that has just started, with the reading of the log; warm is the next one.
With lines kept, a server has memory for the lines of all files, and the warm answer needs none written anew.
Beside the gateway in one process and in five there are a bare aiohttp server, which streams the same bytes
from its memory, and deltalake, which reads the same log and lists the files. Rounds are interleaved. Tables
of the parquet format have no deletion vectors; those of the delta format have one for every twentieth file.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from statistics import median

from bench.bare_stream import streaming
from bench.engine import DELTALAKE, running_engine
from bench.logs import BenchLog, write_log
from bench.peers import PREFIX, origin_of
from bench.plot import GROWTH, draw_growth
from bench.query_figures import RESULTS, Figures, Table, take, times_for, write_results
from bench.timed_query import CAPABILITIES, Question, ask
from gateway.commands.bearer import hash_of
from tests.deployments import Deployment, all_in_one, split

ROUNDS = 3
SIZES = (10_000, 100_000, 1_000_000)
MODES = {"all in one": all_in_one, "split": split}
BARE, LISTING = "bare aiohttp", "deltalake, listing"
COLD, WARM, KEPT = "cold", "warm", "warm, lines kept"
SNAPSHOTS = {"memory": 4 * 1024**3}
WITH_LINES = SNAPSHOTS | {"lines": 3 * 1024**3}


def main(sizes: Sequence[int] = SIZES, rounds: int = ROUNDS) -> None:
    figures: dict[str, dict[int, Table]] = {name: {} for name in CAPABILITIES}
    for response_format, of_format in figures.items():
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                run = _Run(Path(folder), size, response_format)
                of_format[size] = run.measure(rounds)
            print(f"{response_format}, {size:,} files done", flush=True)
    write_results("snapshot_query", "A full query", figures, _rows, rounds)
    draw_growth(RESULTS, GROWTH)


class _Run:
    """All peers over one table in one format."""

    def __init__(self, scratch: Path, size: int, response_format: str) -> None:
        self._scratch = scratch
        self._times = times_for(size)
        self._log = write_log(scratch / "tables" / "files", size, vectors=response_format == "delta")
        self._question = Question(
            path=f"{PREFIX}/shares/share/schemas/default/tables/files/query",
            token=secrets.token_urlsafe(32),
            response_format=response_format,
        )
        gateways = [f"{name}, {state}" for name in MODES for state in (COLD, WARM, KEPT)]
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
        with self._gateway(name, folder, SNAPSHOTS) as gateway:
            self._take(f"{name}, {COLD}", origin_of(gateway), _pids(gateway), 1)
            self._take(f"{name}, {WARM}", origin_of(gateway), _pids(gateway), self._times)
            if not body.exists():
                ask(origin_of(gateway), self._question, body)
        with self._gateway(name, f"{folder} with lines", WITH_LINES) as gateway:
            ask(origin_of(gateway), self._question)
            self._take(f"{name}, {KEPT}", origin_of(gateway), _pids(gateway), self._times)

    def _gateway(
        self, name: str, folder: str, snapshots: Mapping[str, int]
    ) -> AbstractContextManager[Deployment]:
        return running_gateway(name, self._scratch / folder, self._log, self._question.token, snapshots)

    def _take(self, name: str, origin: str, pids: list[int], times: int) -> None:
        take(self._figures[name], origin, pids, self._question, live=self._log.live, times=times)

    def _measure_listing(self) -> None:
        figures = self._figures[LISTING]
        with running_engine(DELTALAKE) as engine:
            taken = engine.run("load", self._log.directory)
        figures.cpu_us.append(taken.cpu / taken.files * 1e6)
        figures.whole_s.append(taken.wall)
        figures.peak_mb.append(taken.peak / 1e6)


@contextmanager
def running_gateway(
    name: str, folder: Path, log: BenchLog, token: str, snapshots: Mapping[str, int] = SNAPSHOTS
) -> Iterator[Deployment]:
    """Start a gateway that shares one table, by the name of its mode."""
    tables = [{"name": "files", "location": f"file://{log.directory}"}]
    settings = {
        "version": 1,
        "shares": [{"name": "share", "schemas": [{"name": "default", "tables": tables}]}],
        "recipients": [{"name": "bench", "tokens": [{"hash": hash_of(token)}], "shares": "*"}],
        "storages": [{"name": "disk", "prefix": f"file://{log.directory.parent}", "vendor": "local"}],
        "limits": {"rate": {"requestsPerSecond": 1_000_000, "burst": 1_000_000}},
        "snapshots": dict(snapshots),
    }
    with MODES[name](folder, settings) as deployment:
        yield deployment


def _pids(gateway: Deployment) -> list[int]:
    return [server.process.pid for server in gateway.processes.values()]


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


if __name__ == "__main__":
    main()
