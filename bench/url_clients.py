"""64 clients at once that each read a table of 10,000 files: what they get, how late, and how evenly.

The peer is a bare aiohttp server that streams the same bytes from its memory to as many clients. Clients are
in a process of their own. Fairness is the time that the slowest client took for its answers against that of
the quickest, which began together with it: 1.0 is an even share.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median, quantiles

from aiohttp import ClientSession, ClientTimeout, TCPConnector

from bench.bare_stream import streaming
from bench.lake import MODES, running_lake
from bench.logs import write_log
from bench.machine import describe_machine
from bench.peers import cpu_seconds, origin_of
from bench.performance import write_performance
from bench.timed_query import CAPABILITIES, Question, ask
from bench.url_query import IN_MEMORY

FILES = 10_000
CLIENTS = 64
ANSWERS = 4
ROUNDS = 3
BARE = "bare aiohttp"
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    files_a_second: float
    p50_ms: float
    p99_ms: float
    fairness: float
    cpu_us: float


def main(rounds: int = ROUNDS) -> None:
    taken: dict[str, list[Outcome]] = {name: [] for name in (*MODES, BARE)}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        lake = stack.enter_context(running_lake(folder))
        log = write_log(folder / "logs" / "files", FILES, vectors=False)
        lake.put(log, "files")
        question = lake.question("files", "parquet")
        pool = stack.enter_context(ProcessPoolExecutor(1, mp_context=get_context("spawn")))
        gateways = {
            name: stack.enter_context(lake.gateway(name, folder / name, ["files"], IN_MEMORY))
            for name in MODES
        }
        body = folder / "body"
        for gateway in gateways.values():
            ask(origin_of(gateway), question, body)
        bare, bare_pid = stack.enter_context(streaming(body))
        peers = {
            name: (origin_of(each), [server.process.pid for server in each.processes.values()])
            for name, each in gateways.items()
        } | {BARE: (bare, [bare_pid])}
        for _ in range(rounds):
            for name, (origin, pids) in peers.items():
                before = cpu_seconds(pids)
                clients = pool.submit(run_clients, origin, question, log.live + 2).result()
                used = cpu_seconds(pids) - before
                taken[name].append(_outcome(clients, log.live, used))
    _report(taken, rounds)


def run_clients(origin: str, question: Question, lines: int) -> list[list[float]]:
    """Return how long each client waited for each of its answers; raise when one was not whole."""
    return asyncio.run(_run_clients(origin, question, lines))


async def _run_clients(origin: str, question: Question, lines: int) -> list[list[float]]:
    headers = {
        "Authorization": f"Bearer {question.token}",
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
        "delta-sharing-capabilities": CAPABILITIES[question.response_format],
    }
    connector = TCPConnector(limit=CLIENTS)
    async with ClientSession(headers=headers, connector=connector, timeout=ClientTimeout(600)) as session:

        async def client() -> list[float]:
            waits = []
            for _ in range(ANSWERS):
                began = time.perf_counter()
                async with session.post(f"{origin}{question.path}", data=question.asked) as response:
                    response.raise_for_status()
                    found = 0
                    async for piece in response.content.iter_any():
                        found += piece.count(b"\n")
                if found != lines:
                    raise RuntimeError(f"an answer has {found:,} lines, not {lines:,}")
                waits.append(time.perf_counter() - began)
            return waits

        return await asyncio.gather(*(client() for _ in range(CLIENTS)))


def _outcome(clients: list[list[float]], files: int, cpu: float) -> Outcome:
    waits = [wait for client in clients for wait in client]
    totals = [sum(client) for client in clients]
    answered = len(waits) * files
    centiles = quantiles(waits, n=100)
    return Outcome(
        files_a_second=answered / max(totals),
        p50_ms=centiles[49] * 1e3,
        p99_ms=centiles[98] * 1e3,
        fairness=max(totals) / min(totals),
        cpu_us=cpu / answered * 1e6,
    )


def _report(taken: Mapping[str, list[Outcome]], rounds: int) -> None:
    figures = {
        name: {
            figure: median(getattr(outcome, figure) for outcome in outcomes)
            for figure in ("files_a_second", "p50_ms", "p99_ms", "fairness", "cpu_us")
        }
        for name, outcomes in taken.items()
    }
    bare = figures[BARE]["files_a_second"]
    lines = [
        f"# {CLIENTS} clients at once",
        "",
        f"{describe_machine()}; each reads a table of {FILES:,} files {ANSWERS} times, median of {rounds} "
        "interleaved rounds. Clients and servers share the machine.",
        "",
        f"| | files a second | of {BARE} | p50 | p99 | slowest to quickest client | CPU a file |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(
            f"| {name} | {each['files_a_second']:,.0f} | {each['files_a_second'] / bare:.2f} "
            f"| {each['p50_ms']:,.0f} ms | {each['p99_ms']:,.0f} ms | {each['fairness']:.2f} "
            f"| {each['cpu_us']:.2f} us |"
            for name, each in figures.items()
        ),
    ]
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "url_clients.md").write_text(text)
    (RESULTS / "url_clients.json").write_text(json.dumps(figures, indent=2) + "\n")
    write_performance(RESULTS)
    print(text)


if __name__ == "__main__":
    main()
