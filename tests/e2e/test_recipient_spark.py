"""Spark through S3A, with executors whose job outlives the first credentials of its tables."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.ports import utcnow
from tests.components import ALL_IN_ONE, PYSPARK, SEAWEEDFS
from tests.e2e.official_client import PYTHON, require_environment
from tests.e2e.recipient_gateway import Shared, sharing_gateway
from tests.e2e.recipient_jars import spark_jars
from tests.e2e.recipient_lake import (
    ARCHIVE,
    IDS,
    LOCATIONS,
    ORDERS,
    log_key,
    recipient_environment,
    upload,
)
from tests.e2e.recipient_store import ROLE, VoidableStore, voidable_store
from tests.fakes.credential_gateway import CredentialGateway, serving
from tests.spark_for_speed import SMALL_TABLES
from tests.stores.process import ServerProcess, running
from tests.waiting import eventually

pytestmark = [
    pytest.mark.component(SEAWEEDFS),
    pytest.mark.component(PYSPARK),
    # Java and Maven come from apt.
    pytest.mark.system,
]

# The SDK asks again 15 seconds before the end.
LIFE = timedelta(seconds=18)
# Of an application that takes two minutes where nothing else runs.
TIMEOUT_SECONDS = 1800


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Iterator[VoidableStore]:
    with voidable_store(tmp_path_factory.mktemp("store")) as started:
        upload(started.s3, tmp_path_factory.mktemp("tables"))
        yield started


@pytest.fixture(scope="module")
def gateway(store) -> Iterator[CredentialGateway]:
    served = CredentialGateway(
        mint=store.mint,
        tables=LOCATIONS,
        token=secrets.token_urlsafe(32),
        region=store.s3.region,
        endpoint=store.s3.endpoint,
        life=LIFE,
    )
    with serving(served):
        yield served


@pytest.fixture(scope="module")
def real_gateway(store, tmp_path_factory) -> Iterator[Shared]:
    directory = tmp_path_factory.mktemp("gateway")
    with sharing_gateway(directory, store=store.s3.endpoint, role=ROLE, keys=store.s3.admin) as shared:
        yield shared


@pytest.fixture(scope="module")
def result(store, gateway, real_gateway, tmp_path_factory) -> dict[str, Any]:
    """Run the application, and make its credentials void whenever an executor is in the middle of a job."""
    require_environment()
    meeting = tmp_path_factory.mktemp("spark")
    profile = meeting / "reader.share"
    profile.write_text(gateway.profile)
    command = [
        *(PYTHON, Path(__file__).with_name("recipient_spark.py"), meeting),
        *(f"{profile}#{ORDERS}", f"{profile}#{ARCHIVE}", LOCATIONS[ARCHIVE]),
        real_gateway.address(ORDERS),
    ]
    env = _environment(gateway, store, meeting)
    with running(
        [str(part) for part in command],
        log_file=meeting / "log",
        ready=(meeting / "orders.reached").exists,
        env=env,
        timeout=TIMEOUT_SECONDS,
    ) as spark:
        _make_void(store, gateway, ORDERS)
        (meeting / "orders.go").touch()
        _wait_for(spark, meeting / "container.reached")
        _make_void(store, gateway, ARCHIVE)
        (meeting / "container.go").touch()
        _wait_for(spark, meeting / "result.json")
        answer: dict[str, Any] = json.loads((meeting / "result.json").read_text())
        return answer


def test_executors_finish_a_job_after_the_first_credential_of_the_table(result):
    assert result["orders"] == len(IDS[ORDERS])


def test_tables_of_one_bucket_are_read_in_one_job_with_a_credential_each(result):
    assert result["together"] == len(IDS[ORDERS]) + len(IDS[ARCHIVE])


def test_the_store_refuses_the_neighbour_to_spark(result):
    assert result["neighbour"] is not None
    assert "AccessDenied" in result["neighbour"]


@pytest.mark.component(ALL_IN_ONE)
def test_spark_reads_through_the_gateway_itself_and_is_refused_at_the_neighbour(result):
    assert result["gateway"] == len(IDS[ORDERS])
    assert "AccessDenied" in result["gateway neighbour"]


def test_s3a_asks_the_gateway_again_without_any_code_of_ours(result, gateway):
    assert result["container"] == len(IDS[ARCHIVE])
    keys = {issued.credentials["AccessKeyId"] for issued in gateway.issued if issued.by == "aws-credentials"}
    assert len(keys) > 1


def _environment(gateway: CredentialGateway, store: VoidableStore, meeting: Path) -> dict[str, str]:
    own = recipient_environment(
        SPARK_JARS=str(spark_jars()),
        SPARK_SETTINGS=json.dumps(SMALL_TABLES),
        SPARK_LOCAL_DIRS=str(meeting / "local"),
        SPARK_WORKER_DIR=str(meeting / "work"),
        PYSPARK_PYTHON=str(PYTHON),
        STORE=store.s3.endpoint,
        AWS_CONTAINER_CREDENTIALS_FULL_URI=gateway.container_url(ARCHIVE),
        AWS_CONTAINER_AUTHORIZATION_TOKEN=f"Bearer {gateway.token}",
    )
    # `running` adds to this process' environment, so that what must not be there is emptied.
    return {**{name: "" for name in os.environ if name.startswith("AWS_") and name not in own}, **own}


def _make_void(store: VoidableStore, gateway: CredentialGateway, table: str) -> None:
    """Wait until the time of all credentials that are out is over, and let the store know it too."""
    handed_out = [issued for issued in gateway.issued if issued.table == table]
    assert handed_out
    while any(issued.expires_at > utcnow() for issued in handed_out):
        time.sleep(0.2)
    store.make_void()
    assert not any(store.opens(issued.credentials, log_key(table)) for issued in handed_out)


def _wait_for(spark: ServerProcess, file: Path) -> None:
    def is_there() -> bool:
        assert spark.is_running(), what()
        return file.exists()

    def what() -> str:
        return f"Spark wrote {file.name}\n{spark.log()[-5000:]}"

    eventually(is_there, what, seconds=TIMEOUT_SECONDS, pause=0.2)
