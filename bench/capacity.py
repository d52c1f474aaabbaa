"""What a request costs in each of the five processes, against all in one: what docs/sizing.md multiplies.

Lists, metadata and credentials are asked for over and over, and so is a table of 2,000 files by URL, plain
and in gzip: all of them warm, in memory. Store, gateway and load share the machine; processor time is that
of the gateway's processes, one by one. Rounds are interleaved: a busy moment falls on all of them.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.lake import MODES
from bench.load import Load, measure
from bench.logs import write_log
from bench.machine import describe_machine
from bench.peers import PREFIX, cpu_seconds, origin_of
from bench.query_figures import HEAD_LINES
from bench.timed_query import Question, ask
from gateway.commands.bearer import hash_of
from gateway.domain.log import DIRECTORY
from tests.deployments import SERVICES, Deployment
from tests.stores.seaweedfs import SeaweedFS, running_seaweedfs

ROUNDS = 5
RESULTS = Path(__file__).parent / "results"
ALL, SPLIT = MODES
PROCESSES = ("edge", *SERVICES)
# With those that the commits after the checkpoint add, 2,000 files are live.
FILES, LIVE = 1_200, 2_000
TABLE = f"{PREFIX}/shares/share/schemas/default/tables/orders"
# Few and long enough that what is under way when the load ends does not count for much.
QUERY = {"method": "POST", "connections": 4, "seconds": 6.0}
OPERATIONS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "list shares": (f"{PREFIX}/shares", {}),
    "metadata": (f"{TABLE}/metadata", {}),
    "credential": (f"{TABLE}/temporary-table-credentials", {"method": "POST"}),
    f"query of {LIVE:,} files": (f"{TABLE}/query", QUERY),
    f"query of {LIVE:,} files, gzip": (f"{TABLE}/query", QUERY | {"encoding": "gzip"}),
}


@dataclass(slots=True, kw_only=True)
class Costs:
    """What one gateway took of each of its processes, in microseconds a request, round by round."""

    deployment: Deployment
    rounds: dict[str, list[Mapping[str, float]]] = field(default_factory=dict)

    def measure(self, operation: str, load: Load) -> None:
        before = self._seconds()
        outcome = measure(load)
        after = self._seconds()
        served = outcome.requests_per_second * (load.seconds + load.warm_up)
        taken = {name: (after[name] - before[name]) / served * 1e6 for name in before}
        self.rounds.setdefault(operation, []).append(taken)

    def of(self, operation: str) -> Mapping[str, float]:
        rounds = self.rounds[operation]
        return {name: median(taken[name] for taken in rounds) for name in rounds[0]}

    def _seconds(self) -> Mapping[str, float]:
        servers = self.deployment.processes.items()
        return {name: cpu_seconds([server.process.pid]) for name, server in servers}


def main(rounds: int = ROUNDS) -> None:
    token = secrets.token_urlsafe(32)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        scratch = Path(folder)
        store = stack.enter_context(running_seaweedfs(scratch / "store"))
        _put_table(store, scratch / "log")
        settings = _settings(store, token)
        gateways = {
            mode: Costs(deployment=stack.enter_context(run(scratch / mode, settings)))
            for mode, run in MODES.items()
        }
        for costs in gateways.values():
            _check(origin_of(costs.deployment), token)
        busy = os.getloadavg()[0]
        for number in range(rounds):
            for operation, (path, how) in OPERATIONS.items():
                for costs in gateways.values() if number % 2 else reversed(gateways.values()):
                    url = f"{origin_of(costs.deployment)}{path}"
                    costs.measure(operation, Load(url=url, token=token, **how))
            print(f"round {number + 1} of {rounds}", flush=True)
    figures = {name: {each: costs.of(each) for each in OPERATIONS} for name, costs in gateways.items()}
    _report(figures, rounds, busy)


def _put_table(store: SeaweedFS, folder: Path) -> None:
    log = write_log(folder, FILES, vectors=False)
    assert log.live == LIVE, log.live
    for file in sorted((folder / DIRECTORY).iterdir()):
        store.s3.upload_file(str(file), store.bucket, f"orders/{DIRECTORY}/{file.name}")


def _check(origin: str, token: str) -> None:
    """See that an answer is whole: a load looks at its status and its end only."""
    answered = ask(origin, Question(path=f"{TABLE}/query", token=token, response_format="parquet"))
    assert answered.lines == LIVE + HEAD_LINES, answered.lines


def _settings(store: SeaweedFS, token: str) -> dict[str, object]:
    table = {
        "name": "orders",
        "location": f"s3://{store.bucket}/orders",
        "historyShared": True,
        "accessModes": ["url", "dir"],
    }
    options = {
        "profile": "seaweedfs",
        "endpoint": store.endpoint,
        "region": "us-east-1",
        "identity": {
            "kind": "keys",
            "accessKeyId": store.gateway.access_key_id,
            "secretAccessKey": {"value": store.gateway.secret_access_key},
        },
        "role": {"arn": store.role_arn},
        "acceptCaseVariants": True,
    }
    return {
        "version": 1,
        "shares": [{"name": "share", "schemas": [{"name": "default", "tables": [table]}]}],
        "recipients": [{"name": "bench", "tokens": [{"hash": hash_of(token)}], "shares": "*"}],
        "storages": [{"name": "lake", "prefix": f"s3://{store.bucket}", "vendor": "s3", "options": options}],
        "limits": {"rate": {"requestsPerSecond": 1_000_000, "burst": 1_000_000}},
    }


def _report(figures: Mapping[str, Mapping[str, Mapping[str, float]]], rounds: int, busy: float) -> None:
    lines = [
        "# What a request costs in each process",
        "",
        f"{describe_machine()}, load {busy:.0f} besides; 16 connections, 4 for queries, median of {rounds} "
        "interleaved rounds. Processor time of the gateway's processes, in microseconds a request; load and "
        "store share the machine.",
        "",
        f"| | {ALL} | five processes | to {ALL} | {' | '.join(PROCESSES)} |",
        "| --- |" + " ---: |" * (3 + len(PROCESSES)),
        *_rows(figures),
    ]
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "capacity.md").write_text(text)
    (RESULTS / "capacity.json").write_text(json.dumps(figures, indent=2) + "\n")
    print(text)


def _rows(figures: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Iterator[str]:
    for operation in OPERATIONS:
        one, five = sum(figures[ALL][operation].values()), figures[SPLIT][operation]
        whole = sum(five.values())
        shares = (f"{five[name]:,.0f} ({five[name] / whole:.0%})" for name in PROCESSES)
        yield f"| {operation} | {one:,.0f} | {whole:,.0f} | {whole / one:.1f} | {' | '.join(shares)} |"


if __name__ == "__main__":
    main()
