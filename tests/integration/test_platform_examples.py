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
from tests.components import GO_CLIENT, GRPCURL, SEAWEEDFS, SPLIT
from tests.http import request
from tests.installed import installed
from tests.integration.platform_services import (
    PUBLIC_PEM,
    Platform,
    build_go_example,
    copy_example,
    running_platform,
    stubs,
)

pytestmark = pytest.mark.component(SPLIT)

PRINCIPALS = [
    {"name": "billing", "certificate": "spiffe://sluice.test/billing", "shares": ["sample", "lake"]},
    {"name": "broker", "certificate": "spiffe://sluice.test/broker", "permissions": ["actForRecipients"]},
    {"name": "reports", "publicKeys": [PUBLIC_PEM], "shares": ["sample"]},
    # Enough for a table, but not at once: however slow the machine is, the next call comes too early.
    {
        "name": "throttled",
        "certificate": "spiffe://sluice.test/throttled",
        "shares": ["sample"],
        "rate": {"requestsPerSecond": 0.2, "burst": 1},
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


@pytest.fixture(scope="module")
def run_go(platform, tmp_path_factory) -> Run:
    """Runs the Go example, built from generated code."""
    directory = tmp_path_factory.mktemp("go")
    program = build_go_example(directory)

    def run(caller: str, *services: str, more: tuple[str, ...] = (), table: str = TABLE) -> Any:
        config = f"--service-config={directory / 'platform' / 'service-config.json'}"
        command = [str(program), *platform.arguments(caller, *services), config, *more, table]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


@pytest.mark.system
@pytest.mark.component(GO_CLIENT)
def test_a_service_in_go_reads_files_for_itself_and_for_a_recipient(run_go):
    reading = ("catalog", "snapshot", "presign")

    for caller, more in (("billing", ()), ("broker", ("--recipient=reader",))):
        result = run_go(caller, *reading, more=more)
        assert result.returncode == 0, result.stderr
        urls = result.stdout.splitlines()
        assert urls
        assert all(request(url).body.startswith(b"PAR1") for url in urls)


@pytest.mark.system
@pytest.mark.component(GO_CLIENT, SEAWEEDFS)
def test_a_service_in_go_gets_a_credential_waits_for_its_rate_and_tells_errors(run_go):
    issued = run_go("billing", "catalog", "vending", table="lake.lake.orders")
    waited = run_go("throttled", "catalog", "snapshot", "presign")
    refused = run_go("reader-of-logs", "catalog", "snapshot", "presign")
    unsupported = run_go("billing", "catalog", "vending")

    assert issued.stdout.startswith("credential "), issued.stderr
    assert " opens s3://lake/sales/orders until " in issued.stdout
    assert waited.returncode == 0, waited.stderr
    assert refused.stderr.startswith("PermissionDenied (SERVICE_REFUSED): ")
    assert unsupported.stderr.startswith("FailedPrecondition (UNSUPPORTED_OPERATION): ")


@pytest.fixture
def grpcurl(platform) -> Run:
    """Calls with nothing but what reflection tells."""
    tls = platform.deployment.certificate("billing")
    files = ["-cacert", tls.ca, "-cert", tls.certificate, "-key", tls.key]

    def call(service: str, *arguments: str, message: str = "") -> Any:
        data = ["-d", message] if message else []
        command = [str(installed("grpcurl")), *files, *data, platform.address(service), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return call


@pytest.mark.system
@pytest.mark.component(GRPCURL)
def test_a_client_without_protos_finds_its_way_by_reflection(grpcurl):
    assert grpcurl("catalog", "list").stdout.split() == [
        "gateway.v1.Catalog",
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    ]
    described = grpcurl("vending", "describe", "gateway.v1.IssueRequest").stdout
    assert "string grant = 1;" in described
    names = '{"share": "sample", "schema": "sales", "table": "orders", "audiences": ["AUDIENCE_SNAPSHOT"]}'
    resolved = json.loads(grpcurl("catalog", "gateway.v1.Catalog/Resolve", message=names).stdout)
    assert resolved["principal"] == "billing"
    version = {"grant": resolved["grants"][0]}
    read = grpcurl("snapshot", "gateway.v1.Snapshot/GetVersion", message=json.dumps(version))
    assert "version" in json.loads(read.stdout), read.stderr


@pytest.mark.system
@pytest.mark.component(GRPCURL)
def test_health_tells_of_each_service_and_of_no_other(grpcurl):
    asked = grpcurl("presign", "grpc.health.v1.Health/Check", message='{"service": "gateway.v1.Presign"}')
    other = grpcurl("presign", "grpc.health.v1.Health/Check", message='{"service": "gateway.v1.Catalog"}')

    assert json.loads(asked.stdout) == {"status": "SERVING"}
    assert "NotFound" in other.stderr
