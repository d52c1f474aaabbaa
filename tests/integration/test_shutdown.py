"""A process that is asked to stop finishes what it has begun, within its grace."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.deployments import Deployment, write_yaml
from tests.http import FINAL_CHUNK, raw_query, read_to_end, request, unchunked
from tests.integration.conftest import TOKEN
from tests.waiting import eventually

BIG = "sample.big.ten_thousand_files"

Revive = Callable[..., Deployment]


@pytest.fixture(scope="module")
def revive(deployment: Deployment) -> Iterator[Revive]:
    """Starts again the processes that a test has stopped, the edge with settings of the next test."""
    edge = deployment.edge
    original = yaml.safe_load(edge.config_file.read_text())

    def revive(**changes: Any) -> Deployment:
        if yaml.safe_load(edge.config_file.read_text()) != original | changes:
            edge.stop()
            write_yaml(edge.config_file, original | changes)
        deployment.revive()
        return deployment

    yield revive
    assert [server.stop() for server in deployment.processes.values()] == [0] * len(deployment.processes)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stream_under_way_is_finished_by_all_that_carry_it(revive, number):
    deployment = revive()
    # Presign answers page by page: it is no part of the stream, another replica of it takes over.
    carrying = {deployment.edge, deployment.processes.get("snapshot", deployment.edge)}
    with raw_query(deployment.base_url, BIG, TOKEN) as sock:
        begun = sock.recv(1024)
        for server in carrying:
            server.process.send_signal(number)
            # A terminal and a process manager may both pass the wish on.
            server.process.send_signal(number)
        eventually(lambda: all("stopping" in server.log() for server in carrying))
        answer = begun + read_to_end(sock)

    assert answer.endswith(FINAL_CHUNK)
    assert unchunked(answer).count(b'{"file":') == 10_000
    assert {server.stop() for server in carrying} == {0}


def test_a_process_takes_no_new_connection_and_is_not_ready_while_streams_finish(revive):
    deployment = revive()
    with raw_query(deployment.base_url, BIG, TOKEN) as sock:
        sock.recv(1024)
        deployment.edge.process.send_signal(signal.SIGTERM)
        eventually(lambda: "stopping" in deployment.edge.log())
        eventually(lambda: request(f"{deployment.edge.metrics_url}/readyz").status == 503)
        eventually(lambda: refuses(deployment.base_url))
        read_to_end(sock)
    assert deployment.edge.stop() == 0


def test_a_reader_that_never_finishes_is_cut_off_after_the_grace_and_can_tell(revive):
    deployment = revive(grace="2s")
    with raw_query(deployment.base_url, BIG, TOKEN) as sock:
        begun = sock.recv(1024)
        assert deployment.edge.stop() == 0
        answer = begun + read_to_end(sock)

    assert not answer.endswith(FINAL_CHUNK)


def test_a_process_that_drains_serves_on_while_it_says_that_it_is_not_ready(revive):
    deployment = revive(drain="10m")
    deployment.edge.process.send_signal(signal.SIGTERM)
    eventually(lambda: request(f"{deployment.edge.metrics_url}/readyz").status == 503)

    answer = request(f"{deployment.base_url}/shares", token=TOKEN)

    assert answer.status == 200
    assert answer.headers["connection"] == "close"
    deployment.edge.stop(signal.SIGKILL)
    revive()


def refuses(base_url: str) -> bool:
    try:
        request(f"{base_url}/shares", token=TOKEN)
    except ConnectionRefusedError:
        return True
    except ConnectionError:
        # It waited to be accepted when the listener closed.
        return False
    return False
