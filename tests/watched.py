"""A gateway in many processes with all that is worth watching: Redis, a token service, a worker."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from gateway.commands.bearer import hash_of
from gateway.demo.sample import ensure_sample
from tests.deployments import Deployment, split
from tests.doubles.server import serving
from tests.doubles.steerable_sts import SteerableSts
from tests.http import Answer, request
from tests.ports import free_port
from tests.repository import ROOT
from tests.stores.redis import Server, running_server, valkey_program
from tests.waiting import START_SECONDS, eventually

RECIPIENTS = ("acme", "globex", "initech")
# One whose rate is soon used up.
HASTY = "hasty"
DIR_TABLES = tuple(f"t{number}" for number in range(40))
_TABLES = "/shares/{share}/schemas/{schema}/tables/{table}"
_RATE = {"requestsPerSecond": 100_000, "burst": 100_000}


@dataclass
class Watched:
    """The parts, and how to make use of them as recipients do."""

    deployment: Deployment
    sts: SteerableSts
    redis: Server
    directory: Path
    worker_url: str

    @property
    def targets(self) -> Mapping[str, Sequence[str]]:
        """Return the metrics addresses of the processes, by the names that Prometheus' jobs have."""
        jobs: dict[str, list[str]] = {"sluice-worker": [self.worker_url.removeprefix("http://")]}
        for name, process in self.deployment.processes.items():
            address = process.metrics_url.removeprefix("http://")
            jobs.setdefault(f"sluice-{name.partition('-')[0]}", []).append(address)
        return jobs

    def samples(self) -> Iterator[Sample]:
        """Give what all processes show."""
        for addresses in self.targets.values():
            for address in addresses:
                with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as response:
                    text = response.read().decode()
                for family in text_string_to_metric_families(text):
                    yield from family.samples

    def ask(self, recipient: str, path: str, body: bytes | None = None) -> Answer:
        return request(
            f"{self.deployment.base_url}{path}",
            token=f"slc_{recipient}",
            method="GET" if body is None else "POST",
            body=body,
        )

    def query(self, recipient: str, schema: str, table: str, body: bytes = b"{}") -> Answer:
        return self.ask(
            recipient, _TABLES.format(share="sample", schema=schema, table=table) + "/query", body
        )

    def vend(self, recipient: str, table: str) -> Answer:
        path = _TABLES.format(share="lake", schema="default", table=table)
        return self.ask(recipient, f"{path}/temporary-table-credentials", b"")

    def succeed(self, tables: Sequence[str]) -> None:
        """Send requests of every kind for each recipient, of which all succeed; vend a table for each."""
        for recipient, table in zip(RECIPIENTS, tables, strict=True):
            assert self.ask(recipient, "/shares").status == 200
            hints = b'{"predicateHints": ["station > 5"]}'
            assert self.query(recipient, "big", "ten_thousand_files", hints).status == 200
            assert self.vend(recipient, table).status == 200


@contextmanager
def running_watched(directory: Path, replicas: int = 1, workers: int = 2) -> Iterator[Watched]:
    with ExitStack() as stack:
        sts = SteerableSts()
        application = web.Application()
        application.router.add_post("/", sts.handle)
        sts.endpoint = stack.enter_context(serving(application))
        redis = stack.enter_context(running_server(valkey_program(), directory / "redis"))
        settings = _settings(directory, sts, redis)
        deployment = stack.enter_context(
            split(directory / "gateway", settings, replicas=replicas, workers=workers)
        )
        worker_url = stack.enter_context(_running_worker(directory / "worker"))
        yield Watched(deployment, sts, redis, directory, worker_url)


@contextmanager
def _running_worker(directory: Path) -> Iterator[str]:
    """Run a worker of the pipeline whose jobs need no Spark."""
    directory.mkdir()
    address = f"127.0.0.1:{free_port()}"
    config = {"allowAnonymous": True, "stateDir": str(directory), "metrics": {"listen": address}}
    (directory / "server.yaml").write_text(json.dumps(config))
    command = [
        sys.executable,
        "-m",
        "tests.integration.pipeline_worker",
        str(directory / "server.yaml"),
        "30",
        "5",
    ]
    with (directory / "log").open("wb") as log:
        worker = subprocess.Popen(command, cwd=ROOT, stderr=log)
    try:
        eventually(lambda: _answers(f"http://{address}/readyz"), seconds=START_SECONDS)
        yield f"http://{address}"
    finally:
        worker.terminate()
        worker.wait(120)


def _answers(url: str) -> bool:
    try:
        return request(url).status == 200
    except OSError:
        return False


def _settings(directory: Path, sts: SteerableSts, redis: Server) -> dict[str, Any]:
    sample = ensure_sample(directory / "tables", lambda _: None)
    lake = [
        {"name": name, "location": f"s3://lake/tables/{name}", "historyShared": True, "accessModes": ["dir"]}
        for name in DIR_TABLES
    ]
    (directory / "landing").mkdir()
    return {
        "version": 1,
        "shares": [
            *sample.to_shares(),
            {"name": "lake", "schemas": [{"name": "default", "tables": lake}]},
        ],
        "storages": [
            {"name": "sample", "prefix": str(sample.directory), "vendor": "local"},
            {
                "name": "lake",
                "prefix": "s3://lake",
                "vendor": "s3",
                "credentialLife": "1h",
                "options": {
                    "profile": "custom",
                    "capabilities": {"inlinePolicy": True},
                    "endpoint": sts.endpoint,
                    "identity": {
                        "kind": "keys",
                        "accessKeyId": "gateway",
                        "secretAccessKey": {"value": "of the gateway"},
                    },
                },
            },
        ],
        "recipients": list(_recipients()),
        "cache": {"redis": {"url": redis.url, "timeout": "5s"}},
        "usage": {"landing": str(directory / "landing")},
        "audit": {"segmentAge": "10s"},
        "limits": {"rate": _RATE},
    }


def _recipients() -> Iterator[dict[str, Any]]:
    now = datetime.now(UTC)
    for number, name in enumerate(RECIPIENTS, start=1):
        token = {
            "hash": hash_of(f"slc_{name}"),
            "expires": f"{now + timedelta(days=20 * number):%Y-%m-%dT%H:%M:%SZ}",
        }
        yield {"name": name, "tokens": [token], "shares": "*"}
    rate = {"requestsPerSecond": 0.001, "burst": 5}
    yield {"name": HASTY, "tokens": [{"hash": hash_of(f"slc_{HASTY}")}], "shares": "*", "rate": rate}
