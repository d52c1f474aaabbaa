"""Requests per second through the edge: all in one process, split into five, and against bare aiohttp.

Bare aiohttp gives the same bytes with the same headers and does nothing else, so that its ratio to the
gateway is the price of everything the gateway does. Rounds are interleaved: a busy moment of the machine
falls on all of them.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from bench import bare
from bench.load import Load
from bench.peers import PREFIX, Peer, bare_peer, gateway_peer, measure_peer, origin_of
from gateway.commands.bearer import hash_of
from tests.deployments import all_in_one, split

ROUNDS = 5
RESULTS = Path(__file__).parent / "results"
TABLE = f"{PREFIX}/shares/share00/schemas/default/tables/trips"
PATHS = {"list shares": f"{PREFIX}/shares", "version": f"{TABLE}/version", "metadata": f"{TABLE}/metadata"}
ALL, SPLIT, BARE = "all in one", "split", "bare"


def main() -> None:
    token = secrets.token_urlsafe(32)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        peers = list(_start(Path(scratch), token, stack))
        for number in range(ROUNDS):
            for operation, path in PATHS.items():
                # Each round begins with another peer, so that none always follows the same one.
                for peer in peers[number % len(peers) :] + peers[: number % len(peers)]:
                    measure_peer(peer, operation, Load(url=peer.origin + path, token=token))
            print(f"round {number + 1} of {ROUNDS}", flush=True)
    _report({peer.name: peer for peer in peers})


def _start(scratch: Path, token: str, stack: ExitStack) -> Iterator[Peer]:
    settings = _settings(scratch, token)
    gateway = stack.enter_context(all_in_one(scratch / "all", settings))
    yield gateway_peer(ALL, gateway)
    with _asyncio_instead_of_uvloop(scratch / "stub"):
        plain = stack.enter_context(all_in_one(scratch / "plain", settings))
    yield gateway_peer(f"{ALL}, asyncio", plain)
    yield gateway_peer(SPLIT, stack.enter_context(split(scratch / "split", settings)))
    answers = [bare.record(origin_of(gateway), path, token) for path in PATHS.values()]
    for name, with_uvloop in ((BARE, True), (f"{BARE}, asyncio", False)):
        yield stack.enter_context(bare_peer(name, answers, with_uvloop=with_uvloop))


@contextmanager
def _asyncio_instead_of_uvloop(folder: Path) -> Iterator[None]:
    """Let processes that start meanwhile find the standard loop where they look for the other."""
    folder.mkdir()
    (folder / "uvloop.py").write_text("from asyncio import new_event_loop\n")
    os.environ["PYTHONPATH"] = str(folder)
    try:
        yield
    finally:
        del os.environ["PYTHONPATH"]


def _settings(scratch: Path, token: str) -> dict[str, object]:
    tables = scratch / "tables"
    _write_table(tables / "trips")
    schemas = [{"name": "default", "tables": [{"name": "trips", "location": f"file://{tables}/trips"}]}]
    return {
        "version": 1,
        "shares": [{"name": f"share{number:02}", "schemas": schemas} for number in range(20)],
        "recipients": [
            {
                "name": "bench",
                "tokens": [{"hash": hash_of(token)}],
                "shares": "*",
            }
        ],
        "storages": [{"name": "disk", "prefix": f"file://{tables}", "vendor": "local"}],
        "limits": {"rate": {"requestsPerSecond": 1_000_000, "burst": 1_000_000}},
    }


def _write_table(folder: Path) -> None:
    columns = [
        {"name": f"column{number}", "type": "long", "nullable": True, "metadata": {}} for number in range(20)
    ]
    actions: list[Mapping[str, object]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "7b1f8cb1-57c5-4a6f-9d5e-0a6f2f6f9c11",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": columns}),
                "partitionColumns": [],
                "configuration": {},
                "createdTime": 1_700_000_000_000,
            }
        },
        *(
            {
                "add": {
                    "path": f"part-{number:05}.parquet",
                    "partitionValues": {},
                    "size": 1000,
                    "modificationTime": 1_700_000_000_000,
                    "dataChange": True,
                }
            }
            for number in range(100)
        ),
    ]
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))


def _report(peers: Mapping[str, Peer]) -> None:
    figures = {
        peer.name: {
            operation: {
                "requests_per_second": round(median(peer.rates[operation])),
                "p99_ms": round(median(peer.latencies[operation]), 2),
                "cpu_us_per_request": round(median(peer.cpu[operation])),
                "of_bare": round(median(peer.rates[operation]) / median(peers[BARE].rates[operation]), 2),
            }
            for operation in PATHS
        }
        for peer in peers.values()
    }
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "system": sys.platform}
    text = _markdown(figures, machine)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "edge_throughput.json").write_text(
        json.dumps({"machine": machine, "peers": figures}, indent=2) + "\n"
    )
    (RESULTS / "edge_throughput.md").write_text(text)
    print(text)


def _markdown(figures: Mapping[str, Mapping[str, Mapping[str, float]]], machine: Mapping[str, object]) -> str:
    lines = [
        "# Requests per second through the edge",
        "",
        f"{machine['cores']} cores, Python {machine['python']}, 16 connections, median of {ROUNDS} rounds, "
        "interleaved. The load comes from a process of its own on the same machine, so that five processes "
        "share what one had to itself.",
        "",
        "| | " + " | ".join(PATHS) + " |",
        "| --- |" + " ---: |" * len(PATHS),
    ]
    for name, operations in figures.items():
        cells = (
            f"{figure['requests_per_second']:,.0f}/s = {figure['of_bare']:.2f} of bare, "
            f"{figure['cpu_us_per_request']:.0f} us CPU, p99 {figure['p99_ms']:.1f} ms"
            for figure in operations.values()
        )
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
