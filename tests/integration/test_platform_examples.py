"""The examples for platform services run against five processes, by a certificate and by a JWT."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gateway.demo.s3_sample import to_schema, to_storage
from tests.components import SEAWEEDFS, SPLIT
from tests.http import request
from tests.integration.platform import PUBLIC_PEM, Platform, copy_example, running_platform, stubs

pytestmark = pytest.mark.component(SPLIT)

PRINCIPALS = [
    {"name": "billing", "certificate": "spiffe://sluice.test/billing", "shares": ["sample", "lake"]},
    {"name": "broker", "certificate": "spiffe://sluice.test/broker", "permissions": ["actForRecipients"]},
    {"name": "reports", "publicKey": PUBLIC_PEM, "shares": ["sample"]},
    # Enough for a table, but not at once.
    {
        "name": "throttled",
        "certificate": "spiffe://sluice.test/throttled",
        "shares": ["sample"],
        "rate": {"requestsPerSecond": 2, "burst": 1},
    },
    {
        "name": "reader-of-logs",
        "certificate": "spiffe://sluice.test/reader-of-logs",
        "shares": ["sample"],
        "methods": ["Catalog.Resolve", "Snapshot"],
    },
]
TABLE = "sample.sales.orders"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def platform(tmp_path_factory, settings, seaweedfs) -> Iterator[Platform]:
    own = settings | {
        "shares": [*settings["shares"], {"name": "lake", "schemas": [to_schema()]}],
        "storages": [
            *settings["storages"],
            to_storage(seaweedfs.endpoint, seaweedfs.region, seaweedfs.gateway),
        ],
        "principals": PRINCIPALS,
        "services": {"reflection": True},
    }
    with running_platform(tmp_path_factory.mktemp("platform"), own) as running:
        yield running


@pytest.fixture(scope="module")
def run(platform, tmp_path_factory) -> Run:
    """Runs a Python example with generated code of its own."""
    directory = tmp_path_factory.mktemp("python")
    example = copy_example("python", directory)
    env = {**os.environ, "PYTHONPATH": str(stubs(directory))}

    def run(script: str, caller: str, *services: str, more: tuple[str, ...] = (), table: str = TABLE) -> Any:
        command = [
            sys.executable,
            str(example / script),
            *platform.arguments(caller, *services),
            *more,
            table,
        ]
        return subprocess.run(command, env=env, cwd=directory, capture_output=True, text=True, check=False)

    return run


def urls_of(result: subprocess.CompletedProcess[str]) -> list[str]:
    assert result.returncode == 0, result.stderr
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return [line["file"]["url"] for line in lines if "file" in line]


def read_files(run: Run, caller: str, *more: str, table: str = TABLE) -> Any:
    return run("read_files.py", caller, "catalog", "snapshot", "presign", more=more, table=table)


def test_a_service_with_a_certificate_reads_files(run):
    urls = urls_of(read_files(run, "billing"))

    assert urls
    assert all(request(url).body.startswith(b"PAR1") for url in urls)


def test_a_table_of_many_pages_comes_whole(run):
    urls = urls_of(read_files(run, "billing", table="sample.big.ten_thousand_files"))

    assert len(set(urls)) == 10_000


def test_a_service_with_a_jwt_reads_files(run, platform):
    token = ("--service=reports", f"--service-key={platform.signing_key}")

    # The certificate names nobody: the token, sent to all three services, is who it is.
    assert urls_of(read_files(run, "mesh", *token))
    assert "SERVICE_REFUSED" in read_files(run, "mesh").stderr


def test_a_service_reads_files_for_a_recipient(run):
    assert urls_of(read_files(run, "broker", "--recipient=reader"))
    assert "RESOURCE_DOES_NOT_EXIST" in read_files(run, "broker").stderr


def test_a_service_over_its_rate_waits_and_gets_through(run, platform):
    assert urls_of(read_files(run, "throttled"))

    metrics = request(f"{platform.deployment.catalog.metrics_url}/metrics").body.decode()
    assert 'sluice_rpc_refused_calls_total{caller="throttled",reason="rate"}' in metrics


def test_a_service_without_a_method_is_told_so(run):
    result = read_files(run, "reader-of-logs")

    assert result.returncode == 1
    assert "SERVICE_REFUSED" in result.stderr
    assert "'reader-of-logs' may not call Presign.Sign" in result.stderr


@pytest.mark.component(SEAWEEDFS)
def test_a_service_gets_a_credential_and_does_not_show_it(run):
    result = run("get_credential.py", "billing", "catalog", "vending", table="lake.lake.orders")

    assert result.returncode == 0, result.stderr
    shown = json.loads(result.stdout)
    assert (shown["kind"], shown["location"]) == ("aws", "s3://lake/sales/orders")
    assert shown["id"]
    assert shown["expiresAtMs"]


def test_a_table_without_credentials_is_a_clear_error(run):
    result = run("get_credential.py", "billing", "catalog", "vending")

    assert result.returncode == 1
    assert result.stderr.startswith("FAILED_PRECONDITION (UNSUPPORTED_OPERATION): ")
    assert "Traceback" not in result.stderr


def test_a_service_that_is_down_is_told_from_one_that_refuses(run, platform):
    result = run("get_credential.py", "billing", "vending", more=("--catalog=127.0.0.1:1",))

    assert "the service was not reached: UNAVAILABLE" in result.stderr
