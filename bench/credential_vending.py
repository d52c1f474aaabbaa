"""Credentials a second through HTTP: all in one process and split, against STS itself and bare aiohttp.

Warm: one table asked for over and over, which the window lets the gateway answer from memory, though every
answer has its audit event on disk first. Bare aiohttp gives the same bytes and does nothing else; boto3 asks
the same store's STS for the same policy. Cold: tables that nobody asked for before, one after the other, each
beside a call to STS for the same directory. Rounds are interleaved: a busy moment falls on all of them.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import OK, HTTPConnection
from pathlib import Path
from statistics import median
from time import perf_counter

from bench import bare
from bench.load import Load
from bench.peers import PREFIX, Peer, bare_peer, gateway_peer, measure_peer, origin_of
from bench.sts_direct import DirectLoad, assume, measure_direct, sts_client
from gateway.commands.bearer import hash_of
from tests.deployments import all_in_one, split
from tests.stores.seaweedfs import SeaweedFS, running_seaweedfs

ROUNDS = 5
COLD_TABLES = 60
RESULTS = Path(__file__).parent / "results"
WARM = "warm"
ALL, SPLIT, BARE, DIRECT = "all in one", "split", "bare aiohttp", "STS by boto3"


def main() -> None:
    token = secrets.token_urlsafe(32)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        scratch = Path(folder)
        store = stack.enter_context(running_seaweedfs(scratch / "store"))
        peers = list(_start(scratch, store, token, stack))
        direct = _direct(store, "t0")
        direct_rates: list[float] = []
        direct_p99: list[float] = []
        for number in range(ROUNDS):
            for peer in peers[number % len(peers) :] + peers[: number % len(peers)]:
                load = Load(url=f"{peer.origin}{_path('t0')}", token=token, method="POST")
                measure_peer(peer, WARM, load)
            outcome = measure_direct(direct)
            direct_rates.append(outcome.requests_per_second)
            direct_p99.append(outcome.p99_ms)
            print(f"round {number + 1} of {ROUNDS}", flush=True)
        cold = {peer.name: _cold(peer, store, token) for peer in peers if peer.name != BARE}
    _report(peers, median(direct_rates), median(direct_p99), cold)


def _start(scratch: Path, store: SeaweedFS, token: str, stack: ExitStack) -> Iterator[Peer]:
    settings = _settings(store, token)
    gateway = stack.enter_context(all_in_one(scratch / "all", settings))
    yield gateway_peer(ALL, gateway)
    yield gateway_peer(SPLIT, stack.enter_context(split(scratch / "split", settings)))
    answer = bare.record(origin_of(gateway), _path("t0"), token, "POST")
    yield stack.enter_context(bare_peer(BARE, [answer], with_uvloop=True))


def _path(table: str) -> str:
    return f"{PREFIX}/shares/lake/schemas/default/tables/{table}/temporary-table-credentials"


def _settings(store: SeaweedFS, token: str) -> dict[str, object]:
    tables = [
        {
            "name": f"t{number}",
            "location": f"s3://{store.bucket}/tables/t{number}",
            "historyShared": True,
            "accessModes": ["dir"],
        }
        for number in range(COLD_TABLES + 1)
    ]
    return {
        "version": 1,
        "shares": [{"name": "lake", "schemas": [{"name": "default", "tables": tables}]}],
        "recipients": [{"name": "bench", "tokens": [{"hash": hash_of(token)}], "shares": "*"}],
        "storages": [
            {
                "name": "lake",
                "prefix": f"s3://{store.bucket}",
                "vendor": "s3",
                "options": {
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
                },
            }
        ],
        "limits": {"rate": {"requestsPerSecond": 1_000_000, "burst": 1_000_000}},
    }


def _direct(store: SeaweedFS, table: str) -> DirectLoad:
    bucket, prefix = f"arn:aws:s3:::{store.bucket}", f"tables/{table}/*"
    condition = {"StringLike": {"s3:prefix": [prefix]}}
    statements = [
        {
            "Effect": "Allow",
            "Action": ["s3:GetObject", "s3:GetObjectVersion"],
            "Resource": f"{bucket}/{prefix}",
        },
        {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": bucket, "Condition": condition},
        {"Effect": "Allow", "Action": "s3:GetBucketLocation", "Resource": bucket},
    ]
    return DirectLoad(
        endpoint=store.endpoint,
        access_key_id=store.gateway.access_key_id,
        secret_access_key=store.gateway.secret_access_key,
        role_arn=store.role_arn,
        policy=json.dumps({"Version": "2012-10-17", "Statement": statements}),
    )


def _cold(peer: Peer, store: SeaweedFS, token: str) -> tuple[float, float]:
    """Return the median milliseconds of a first credential, and of a call to STS beside it."""
    client = sts_client(_direct(store, "t0"))
    # Kept open, as boto3 keeps its own.
    connection = HTTPConnection(peer.origin.removeprefix("http://"))
    gateway_ms, direct_ms = [], []
    for number in range(1, COLD_TABLES + 1):
        began = perf_counter()
        connection.request("POST", _path(f"t{number}"), headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answer.read()
        gateway_ms.append((perf_counter() - began) * 1000)
        assert answer.status == OK
        began = perf_counter()
        assume(client, _direct(store, f"t{number}"))
        direct_ms.append((perf_counter() - began) * 1000)
    connection.close()
    return median(gateway_ms), median(direct_ms)


def _report(
    peers: list[Peer], direct_rate: float, direct_p99: float, cold: dict[str, tuple[float, float]]
) -> None:
    bare_rate = next(median(peer.rates[WARM]) for peer in peers if peer.name == BARE)
    lines = [
        "# Credentials a second",
        "",
        f"{os.cpu_count()} cores, Python {platform.python_version()} on {sys.platform}, 16 connections, "
        f"median of {ROUNDS} interleaved rounds. Load, gateway and store share the machine.",
        "",
        "| warm | credentials/s | of STS | of bare | CPU us | p99 ms |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for peer in peers:
        rate, cpu, p99 = (median(figures[WARM]) for figures in (peer.rates, peer.cpu, peer.latencies))
        ratios = f"{rate / direct_rate:.1f} | {rate / bare_rate:.2f}"
        lines.append(f"| {peer.name} | {rate:,.0f} | {ratios} | {cpu:.0f} | {p99:.1f} |")
    lines += [
        f"| {DIRECT} | {direct_rate:,.0f} | 1.0 | {direct_rate / bare_rate:.2f} | | {direct_p99:.1f} |",
        "",
        "| cold, one at a time | median ms | STS beside it | more |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {name} | {ours:.1f} | {theirs:.1f} | {ours - theirs:+.1f} |"
            for name, (ours, theirs) in cold.items()
        ),
    ]
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "credential_vending.md").write_text(text)
    print(text)
