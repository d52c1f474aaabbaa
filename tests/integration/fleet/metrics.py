"""What the processes of a fleet say of themselves."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.integration.fleet.replicas import EDGE, Replica, until

_CALLS = "sluice_rpc_requests_total"
_REQUESTS = "sluice_http_requests_total"


def total(replicas: Iterable[Replica], metric: str, **labels: str) -> float:
    """Return a metric's sum over the replicas, and over the labels that are not named."""
    return sum(
        sample.value
        for replica in replicas
        for sample in _samples(replica)
        if sample.name == metric and labels.items() <= sample.labels.items()
    )


def work_of(replica: Replica) -> int:
    """Return how many requests or calls a replica has answered since it started."""
    return int(total([replica], _REQUESTS if replica.service == EDGE else _CALLS))


async def until_at_work(replica: Replica) -> None:
    """Wait until a replica that was just started is sent something to do."""
    await until(lambda: work_of(replica) > 0, f"{replica.name} gets requests")


def _samples(replica: Replica) -> list[Sample]:
    with urllib.request.urlopen(f"{replica.files.metrics_url}/metrics", timeout=60) as response:
        text = response.read().decode()
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]
