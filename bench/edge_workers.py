"""Requests per second of an edge in a process of its own: with two workers, to what one process serves.

Rounds are interleaved, so that a busy moment of the machine falls on both. The load and the four services
behind the edge share the machine's cores with it: a ratio near 1 says that the edge was not what ran short.
"""

from __future__ import annotations

import os
import platform
import secrets
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from bench.load import Load, measure
from gateway.commands.bearer import hash_of
from tests.builders import numbers
from tests.deployments import Deployment, split
from tests.http import request
from tests.waiting import eventually

ROUNDS = 5
WORKERS = (1, 2)
TABLE = "/shares/sales/schemas/default/tables/orders"
PATHS = {"list shares": "/shares", "version": f"{TABLE}/version", "metadata": f"{TABLE}/metadata"}
RESULT = Path(__file__).parent / "results" / "edge_workers.md"

Rates = dict[tuple[int, str], list[float]]


def main() -> None:
    token = secrets.token_urlsafe(32)
    rates: Rates = {}
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        settings = _settings(Path(scratch) / "lake", token)
        edges = {
            workers: stack.enter_context(split(Path(scratch) / str(workers), settings, workers=workers))
            for workers in WORKERS
        }
        eventually(lambda: "sluice_workers 2.0" in _metrics(edges[2]))
        for number in range(ROUNDS):
            _round(edges, token, rates, first=WORKERS[number % len(WORKERS)])
            print(f"round {number + 1} of {ROUNDS}", flush=True)
        busiest = _busiest(edges[2])
    text = _report(rates, busiest)
    RESULT.write_text(text)
    print(text)


def _round(edges: Mapping[int, Deployment], token: str, rates: Rates, first: int) -> None:
    for operation, path in PATHS.items():
        for workers in sorted(edges, key=lambda workers: workers != first):
            outcome = measure(Load(url=edges[workers].base_url + path, token=token))
            rates.setdefault((workers, operation), []).append(outcome.requests_per_second)


def _metrics(deployment: Deployment) -> str:
    return request(f"{deployment.edge.metrics_url}/metrics").body.decode()


def _busiest(deployment: Deployment) -> float:
    """Return the part of all requests that the busiest worker has answered."""
    counts: Counter[str] = Counter()
    for segment in (deployment.edge.config_file.parent / "audit").glob("*.jsonl*"):
        # audit-<replica>-<start>-<number>.jsonl
        replica = segment.name.rsplit("-", 2)[0]
        counts[replica] += segment.read_bytes().count(b"\n")
    return max(counts.values()) / counts.total()


def _settings(lake: Path, token: str) -> dict[str, object]:
    orders = numbers(lake).append([{"number": 1}])
    tables = [{"name": "orders", "location": str(orders.directory)}]
    return {
        "version": 1,
        "shares": [{"name": "sales", "schemas": [{"name": "default", "tables": tables}]}],
        "storages": [{"name": "lake", "prefix": str(lake), "vendor": "local"}],
        "recipients": [{"name": "bench", "tokens": [{"hash": hash_of(token)}], "shares": "*"}],
        "limits": {"rate": {"requestsPerSecond": 1_000_000, "burst": 1_000_000}},
    }


def _report(rates: Rates, busiest: float) -> str:
    lines = [
        "# Workers of an edge",
        "",
        f"{os.cpu_count()} cores, shared with the four services behind the edge and with the load; Python "
        f"{platform.python_version()}, 16 connections, median of {ROUNDS} interleaved rounds.",
        "",
        "| | 1 process | 2 workers | ratio |",
        "|---|---:|---:|---:|",
    ]
    for operation in PATHS:
        one, two = (median(rates[workers, operation]) for workers in WORKERS)
        lines.append(f"| {operation} | {one:,.0f}/s | {two:,.0f}/s | {two / one:.2f} |")
    lines += ["", f"The busier worker answered {busiest:.0%} of the requests."]
    return "\n".join(lines) + "\n"
