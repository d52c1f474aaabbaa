"""A changed configuration is taken up without dropping a request; a broken one is refused."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest
import yaml

from gateway.commands.bearer import hash_of
from tests.deployments import Deployment, ServerProcess, write_yaml
from tests.http import request
from tests.integration.conftest import TOKEN
from tests.waiting import eventually

# Of the 2.2 s that tests/unit/bootstrap/test_reload.py proves; the rest is for a busy machine.
REVOKED_WITHIN = 15


def shares(deployment: Deployment, token: str = TOKEN) -> list[str]:
    answer = request(f"{deployment.base_url}/shares", token=token)
    assert answer.status == 200, answer.body
    return [item["name"] for item in answer.json["items"]]


def reloads(server: ServerProcess, outcome: str = "success") -> float:
    return server.metric(f'sluice_config_reloads_total{{outcome="{outcome}"}} ')


@pytest.fixture(autouse=True)
def restored(deployment) -> Iterator[None]:
    """Put the files of all processes back after a test, and wait until they are reloaded."""
    files = {server: server.config_file.read_text() for server in deployment.processes.values()}
    read = {server: reloads(server) + reloads(server, "failure") for server in files}
    yield
    changed = [server for server in files if server.config_file.read_text() != files[server]]
    # A process that has not read the change yet would count it as the reload of the original.
    eventually(lambda: all(reloads(each) + reloads(each, "failure") > read[each] for each in changed))
    applied = {server: reloads(server) for server in changed}
    for server in changed:
        write_yaml(server.config_file, yaml.safe_load(files[server]))
    eventually(lambda: all(reloads(server) > applied[server] for server in changed))


def test_new_shares_and_recipients_appear_without_a_dropped_request(deployment, settings):
    failures, stop = [], threading.Event()

    def keep_asking() -> None:
        while not stop.wait(0.01):
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

    eventually(
        lambda: request(f"{deployment.base_url}/shares", token=TOKEN).status == 401, seconds=REVOKED_WITHIN
    )
    assert shares(deployment, "slc_other") == []


def test_a_broken_file_is_refused_loudly_and_the_old_one_stays_in_force(deployment):
    assert reloads(deployment.catalog, "failure") == 0
    deployment.rewrite({"recipents": [], "shares": [{"name": "a b"}], "port": "many"})

    eventually(lambda: all(reloads(server, "failure") for server in deployment.processes.values()))
    (log,) = [line for line in deployment.catalog.log().splitlines() if "is refused" in line]
    assert "recipients" in log
    assert "port" in log
    assert "a b" in log
    assert shares(deployment) == ["sample"]
    assert reloads(deployment.catalog, "failure") == 1


def test_a_hangup_reads_the_file_again_even_if_it_looks_the_same(deployment):
    before, logged = reloads(deployment.catalog), len(deployment.catalog.log())
    for server in deployment.processes.values():
        server.process.send_signal(signal.SIGHUP)

    eventually(lambda: "configuration reloaded" in deployment.catalog.log()[logged:])
    eventually(lambda: reloads(deployment.catalog) > before)
    assert shares(deployment) == ["sample"]


def test_what_is_read_once_is_named_as_needing_a_restart(deployment):
    deployment.rewrite({"requestTimeoutSeconds": 17})

    eventually(lambda: "requestTimeoutSeconds needs a restart" in deployment.edge.log())
