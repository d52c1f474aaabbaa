"""The real components that tests start, and the summary table of their tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

CLIENT = "delta-sharing 1.4.2, the official client"
DELTALAKE = "deltalake 1.6.6, reading the sample tables from disk"
ALL_IN_ONE = "sluice serve, all in one process"
SPLIT = "sluice serve, five processes with mutual TLS"
DEMO = "sluice demo, as a new user starts it"
SCHEMATHESIS = "schemathesis, from the OpenAPI document"
BUF = "buf 1.75.0"
CURL = "curl"
GRPCURL = "grpcurl 1.9.4"
GO_CLIENT = "the example in Go, as a platform service"
SEAWEEDFS = "SeaweedFS 4.48"
MINIO = "MinIO 2026-02-12"
VALKEY = "Valkey 9.1.2"
REDIS = "Redis, from apt"
AZURITE = "Azurite 3.37.0"
FAKE_GCS_SERVER = "fake-gcs-server 1.56.1"
TOXIPROXY = "toxiproxy 2.5.0"
ENVOY = "Envoy 1.40.0"
NGINX = "nginx, from apt"
PROMETHEUS = "Prometheus, from apt"
PROMTOOL = "promtool, from apt"
HELM3 = "Helm 3.22.0"
HELM4 = "Helm 4.3.1"
KUBERNETES = "Kubernetes 1.36.3, with nodes by kwok 0.8.0"
SPARK_ON_KUBERNETES = "PySpark, with executors in pods of that Kubernetes"
MOTO = "moto 5.2.5, for the shapes of AWS's API only"
BOTO3 = "boto3 1.44.0"
PYSPARK = "PySpark, reading with S3A"
SPARK_WRITER = "PySpark with Delta 4.4.0, writing tables"
SPARK_PIPELINE = "PySpark with Delta 4.4.0, running the jobs of the pipeline"
DUCKDB = "DuckDB"
DELTA_KERNEL = "Delta Kernel, from Maven"
AZURE_DOUBLE = "verifying double of Azure, before Azurite"
GCP_DOUBLE = "verifying double of GCP, before fake-gcs-server"
R2_DOUBLE = "verifying double of R2, before SeaweedFS"
IMAGE = "the image, built and run without an engine"
COMPOSE = "the compose file's containers, run without an engine"
COMPOSE_GO = "compose-go 2.16.2, Docker Compose's own reader"
HADOLINT = "hadolint 2.15.1"

# In the order of the table. tests/unit/test_components.py fails if no test uses one of them.
EXPECTED = (
    *(CLIENT, DELTALAKE, PYSPARK, SPARK_WRITER, SPARK_PIPELINE, DUCKDB, DELTA_KERNEL, BOTO3),
    *(ALL_IN_ONE, SPLIT, DEMO),
    *(SEAWEEDFS, MINIO, AZURITE, FAKE_GCS_SERVER, MOTO),
    *(AZURE_DOUBLE, GCP_DOUBLE, R2_DOUBLE),
    *(VALKEY, REDIS, TOXIPROXY),
    *(ENVOY, NGINX),
    *(PROMETHEUS, PROMTOOL),
    *(HELM3, HELM4, KUBERNETES, SPARK_ON_KUBERNETES),
    *(SCHEMATHESIS, BUF, CURL),
    *(GRPCURL, GO_CLIENT),
    *(IMAGE, COMPOSE, COMPOSE_GO, HADOLINT),
)


# The report of a test carries its components, also from the process of another worker.
_PROPERTY = "component"


class ComponentReport:
    """Counts the tests that name a component by ``@pytest.mark.component(NAME)``."""

    def __init__(self) -> None:
        self._passed: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            item.user_properties.extend((_PROPERTY, name) for name in _components(item))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name in (str(value) for key, value in report.user_properties if key == _PROPERTY):
            if report.failed:
                self._failed[name] += 1
            elif report.passed and report.when == "call":
                self._passed[name] += 1

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        used = [name for name in EXPECTED if name in {*self._passed, *self._failed}]
        if not used:
            return
        terminalreporter.section("components")
        for name in used:
            terminalreporter.write_line(f"{name} {'.' * (60 - len(name))} {self._outcome(name)}")

    def _outcome(self, name: str) -> str:
        passed, failed = self._passed[name], self._failed[name]
        return f"{_tests(passed)} passed{f', {failed} failed' if failed else ''}"


def _components(item: pytest.Item) -> Iterator[str]:
    for mark in item.iter_markers("component"):
        for name in mark.args:
            if name not in EXPECTED:
                raise pytest.UsageError(
                    f"{item.nodeid} names a component that tests/components.py does not: {name}"
                )
            yield name


def _tests(number: int) -> str:
    return f"{number} test{'' if number == 1 else 's'}"
