"""A Prometheus that scrapes a gateway, and its HTTP API."""

from __future__ import annotations

import json
import shutil
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.installed import installed
from tests.observed import RULES
from tests.ports import free_ports
from tests.stores.process import retried, running


class PrometheusError(Exception):
    """It refused a query, and says why."""


@dataclass(frozen=True, slots=True)
class Prometheus:
    url: str

    def query(self, expr: str) -> Sequence[Mapping[str, Any]]:
        return list(self._get("query", query=expr)["result"])

    def query_range(self, expr: str, start: float, end: float, step: float) -> Sequence[Mapping[str, Any]]:
        found = self._get("query_range", query=expr, start=start, end=end, step=step)
        return list(found["result"])

    def rules(self) -> Sequence[Mapping[str, Any]]:
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def targets(self) -> Sequence[Mapping[str, Any]]:
        return list(self._get("targets")["activeTargets"])

    def _get(self, path: str, **parameters: object) -> Any:
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as exc:
            raise PrometheusError(f"{parameters}: {exc.read().decode()}") from exc


@contextmanager
def running_prometheus(
    directory: Path, targets: Mapping[str, Sequence[str]], *, interval: str = "5s"
) -> Iterator[Prometheus]:
    """Scrape each job's targets, with our rules in force."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "rules").mkdir()
    for file in RULES:
        shutil.copy(file, directory / "rules")
    config = {
        "global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
        "rule_files": ["rules/*.yaml"],
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": list(addresses)}]}
            for job, addresses in targets.items()
        ],
    }
    file = directory / "prometheus.yaml"
    file.write_text(json.dumps(config))

    @contextmanager
    def start() -> Iterator[Prometheus]:
        (port,) = free_ports(1)
        listen = f"--web.listen-address=127.0.0.1:{port}"
        storage = f"--storage.tsdb.path={directory / f'data-{port}'}"
        prometheus = Prometheus(f"http://127.0.0.1:{port}")
        with running(
            [installed("prometheus"), f"--config.file={file}", listen, storage],
            log_file=directory / "log",
            ready=lambda: _is_ready(prometheus),
        ):
            yield prometheus

    with retried(start) as prometheus:
        yield prometheus


def _is_ready(prometheus: Prometheus) -> bool:
    try:
        with urllib.request.urlopen(f"{prometheus.url}/-/ready", timeout=30) as response:
            return bool(response.status == 200)
    except OSError:
        return False
