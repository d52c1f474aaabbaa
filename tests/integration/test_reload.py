"""A changed configuration is taken up without dropping a request; a broken one is refused."""

from __future__ import annotations

import signal
import threading

from gateway.commands.bearer import hash_of
from tests.deployments import Deployment
from tests.http import eventually, request
from tests.integration.conftest import TOKEN


def shares(deployment: Deployment, token: str = TOKEN) -> list[str]:
    answer = request(f"{deployment.base_url}/shares", token=token)
    assert answer.status == 200, answer.body
    return [item["name"] for item in answer.json["items"]]


def test_new_shares_and_recipients_appear_without_a_dropped_request(deployment, settings):
    failures, stop = [], threading.Event()

    def keep_asking() -> None:
        while not stop.is_set():
            answer = request(f"{deployment.base_url}/shares/sample/schemas", token=TOKEN)
            if answer.status != 200:
                failures.append(answer)

    asking = threading.Thread(target=keep_asking)
    asking.start()
    try:
        fresh = {"name": "late", "tokens": [{"hash": hash_of("slc_late")}], "shares": ["added"]}
        deployment.rewrite(
            {
                "shares": [*settings["shares"], {"name": "added"}],
                "recipients": [*settings["recipients"], fresh],
            }
        )
        eventually(lambda: shares(deployment) == ["added", "sample"])
        eventually(lambda: shares(deployment, "slc_late") == ["added"])
    finally:
        stop.set()
        asking.join()
    assert not failures


def test_a_token_that_is_taken_away_is_refused_from_the_next_request(deployment):
    assert shares(deployment) == ["sample"]

    deployment.rewrite({"recipients": [{"name": "reader", "tokens": [{"hash": hash_of("slc_other")}]}]})

    eventually(lambda: request(f"{deployment.base_url}/shares", token=TOKEN).status == 401)
    assert shares(deployment, "slc_other") == []


def test_a_broken_file_is_refused_loudly_and_the_old_one_stays_in_force(deployment):
    deployment.rewrite({"recipents": [], "shares": [{"name": "a b"}], "port": "many"})

    eventually(lambda: "is refused" in deployment.catalog.log())
    log = deployment.catalog.log()
    assert "recipients" in log
    assert "port" in log
    assert "a b" in log
    assert shares(deployment) == ["sample"]
    metrics = request(f"{deployment.catalog.metrics_url}/metrics").body.decode()
    assert 'sluice_config_reloads_total{outcome="failure"} 1.0' in metrics


def test_a_hangup_reads_the_file_again_even_if_it_looks_the_same(deployment):
    for server in deployment.processes.values():
        server.process.send_signal(signal.SIGHUP)

    eventually(lambda: "configuration reloaded" in deployment.catalog.log(), seconds=5)
    assert shares(deployment) == ["sample"]


def test_what_is_read_once_is_named_as_needing_a_restart(deployment):
    deployment.rewrite({"requestTimeoutSeconds": 17})

    eventually(lambda: "requestTimeoutSeconds needs a restart" in deployment.edge.log())
