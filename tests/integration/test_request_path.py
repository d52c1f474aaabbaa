"""What goes along with a request through all processes, and what happens when it ends early."""

from __future__ import annotations

import json
import re
import signal

import pytest

from tests.components import SPLIT
from tests.deployments import Deployment, ServerProcess, split
from tests.http import raw_query, request
from tests.integration.conftest import TOKEN
from tests.waiting import eventually

BIG = "sample.big.ten_thousand_files"
SPLIT_ONLY = pytest.mark.parametrize(
    "deployment_kind", [pytest.param(split, id="split", marks=pytest.mark.component(SPLIT))], indirect=True
)
CANCELLED = 'sluice_rpc_requests_total{code="CANCELLED",method="/gateway.v1.Snapshot/Query"} '


def process_of(deployment: Deployment, service: str) -> ServerProcess:
    return deployment.processes.get(service, deployment.edge)


def cancelled_queries(deployment: Deployment) -> float:
    return process_of(deployment, "snapshot").metric(CANCELLED)


def test_a_client_that_goes_away_stops_the_work_behind_it(deployment):
    before = cancelled_queries(deployment)

    def is_cancelled() -> bool:
        # Again if the client is slow: meanwhile the snapshot service may send all pages ahead to the edge.
        with raw_query(deployment.base_url, BIG, TOKEN) as sock:
            sock.recv(1024)
        return cancelled_queries(deployment) > before

    eventually(is_cancelled)


def test_a_request_id_goes_through_the_services_and_comes_back(deployment):
    url = f"{deployment.base_url}/shares/sample/schemas/sales/tables/orders/metadata"

    answer = request(url, token=TOKEN, x_request_id="id-of-mine")

    assert answer.headers["x-request-id"] == "id-of-mine"
    snapshot = process_of(deployment, "snapshot")
    eventually(lambda: '"request_id":"id-of-mine"' in snapshot.log())


def test_the_audit_log_has_the_grant_before_the_answer_ends(deployment):
    url = f"{deployment.base_url}/shares/sample/schemas/sales/tables/orders/query"

    answer = request(url, token=TOKEN, method="POST", body=b"{}", x_request_id="audited-1")

    assert answer.status == 200
    segments = (deployment.edge.config_file.parent / "audit").glob("*.jsonl*")
    events = [json.loads(line) for segment in segments for line in segment.read_text().splitlines()]
    (grant,) = [event for event in events if event["request_id"] == "audited-1" and event["kind"] == "grant"]
    assert grant["principal"] == "reader"
    assert (grant["share"], grant["schema"], grant["table"]) == ("sample", "sales", "orders")
    assert grant["mode"] == "url"
    assert TOKEN not in json.dumps(grant)


@SPLIT_ONLY
def test_a_service_that_hangs_holds_up_nobody_who_asks_whether_the_edge_is_ready(deployment):
    ready = f"{deployment.edge.metrics_url}/readyz"

    def says(status: str) -> bool:
        answer = request(ready)
        assert answer.status == 200
        return bool(answer.json["status"] == status)

    eventually(lambda: says("ok"))
    deployment.processes["vending"].process.send_signal(signal.SIGSTOP)
    try:
        eventually(lambda: says("without vending"))
        assert all(says("without vending") for _ in range(200))
    finally:
        deployment.processes["vending"].process.send_signal(signal.SIGCONT)
    eventually(lambda: says("ok"))


@SPLIT_ONLY
def test_a_service_that_is_gone_is_a_503_that_names_no_internals(deployment):
    deployment.processes["snapshot"].stop(signal.SIGKILL)
    url = f"{deployment.base_url}/shares/sample/schemas/sales/tables/orders/version"

    answer = request(url, token=TOKEN)

    assert answer.status == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.json["errorCode"] == "TEMPORARILY_UNAVAILABLE"
    assert "127.0.0.1" not in answer.json["message"]
    assert request(f"{deployment.base_url}/shares", token=TOKEN).status == 200
    # Directories are served on, so the edge is ready; what it cannot do it says.
    ready = f"{deployment.edge.metrics_url}/readyz"
    eventually(lambda: request(ready).json["status"] == "without snapshot")
    assert request(ready).status == 200
    deployment.revive()


def test_no_token_and_no_signature_is_in_a_log(deployment):
    url = f"{deployment.base_url}/shares/sample/schemas/sales/tables/orders/query"
    answer = request(url, token=TOKEN, method="POST", body=b"{}")
    signature = re.search(rb"sig=([\w-]+)", answer.body)
    assert signature is not None
    request(f"{deployment.base_url}/nowhere?token={TOKEN}", token="slc_wrong")

    logs = deployment.logs()

    assert TOKEN not in logs
    assert "slc_wrong" not in logs
    assert signature[1].decode() not in logs
