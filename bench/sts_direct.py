"""The peer of vending: the same store's STS asked directly with boto3, from a process of its own."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import boto3
from botocore.config import Config

from bench.load import Outcome, run_apart


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectLoad:
    endpoint: str
    access_key_id: str
    secret_access_key: str
    role_arn: str
    policy: str
    threads: int = 16
    seconds: float = 2.0


def sts_client(load: DirectLoad) -> Any:
    session = boto3.Session(
        aws_access_key_id=load.access_key_id, aws_secret_access_key=load.secret_access_key
    )
    config = Config(retries={"max_attempts": 1}, max_pool_connections=load.threads)
    return session.client("sts", endpoint_url=load.endpoint, region_name="us-east-1", config=config)


def assume(client: Any, load: DirectLoad) -> None:
    client.assume_role(
        RoleArn=load.role_arn, RoleSessionName="bench", Policy=load.policy, DurationSeconds=3600
    )


def measure_direct(load: DirectLoad) -> Outcome:
    """Ask from another process, so that its threads do not share our interpreter."""
    return run_apart("bench.sts_direct", asdict(load))


def _run(load: DirectLoad) -> Outcome:
    client = sts_client(load)
    assume(client, load)
    latencies: list[float] = []
    until = perf_counter() + load.seconds

    def ask() -> None:
        while (began := perf_counter()) < until:
            assume(client, load)
            latencies.append(perf_counter() - began)

    threads = [threading.Thread(target=ask) for _ in range(load.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    latencies.sort()
    return Outcome(
        requests_per_second=len(latencies) / load.seconds,
        p50_ms=latencies[len(latencies) // 2] * 1000,
        p99_ms=latencies[len(latencies) * 99 // 100] * 1000,
    )


if __name__ == "__main__":
    print(json.dumps(asdict(_run(DirectLoad(**json.load(sys.stdin))))))
