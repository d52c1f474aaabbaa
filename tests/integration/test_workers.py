"""Several edge workers are to the outside one process."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from gateway.commands.bearer import hash_of
from tests.components import SPLIT
from tests.deployments import Deployment, Settings, split
from tests.http import FINAL_CHUNK, Answer, raw_query, read_to_end, request, unchunked
from tests.integration.conftest import TOKEN
from tests.waiting import START_SECONDS, eventually

pytestmark = pytest.mark.component(SPLIT)

WORKERS = 2
BIG = "sample.big.ten_thousand_files"
BURST = 20
STARTED = re.compile(r'"worker (\d+) is process (\d+)"')


@pytest.fixture(scope="module")
def with_slow(settings: Settings) -> Settings:
    slow = [
        {"name": name, "tokens": [{"hash": hash_of(f"slc_{name}")}], "shares": "*", "rate": rate(BURST)}
        for name in ("slow", "other")
    ]
    return settings | {"recipients": [*settings["recipients"], *slow]}


@pytest.fixture(scope="module")
def deployment(tmp_path_factory, with_slow) -> Iterator[Deployment]:
    with split(tmp_path_factory.mktemp("workers"), with_slow, workers=WORKERS) as running:
        yield running


@pytest.fixture
def shared(deployment: Deployment) -> Deployment:
    """The deployment of the module, with an edge that has all its workers even if a test has stopped it."""
    deployment.revive()
    wait_for_workers(deployment)
    return deployment


def wait_for_workers(deployment: Deployment) -> None:
    eventually(lambda: deployment.edge.metric("sluice_workers") == WORKERS, seconds=START_SECONDS)


def rate(burst: int) -> dict[str, float]:
    """Return a rate that brings no new token while a test runs."""
    return {"requestsPerSecond": 0.001, "burst": burst}


def ask(deployment: Deployment, token: str = TOKEN, request_id: str = "", path: str = "/shares") -> Answer:
    return request(f"{deployment.base_url}{path}", token=token, x_request_id=request_id)


def ask_often(deployment: Deployment, times: int, *args: str, **kwargs: str) -> Counter[int]:
    """Make requests, some at a time, each on a connection of its own, and return their statuses."""
    with ThreadPoolExecutor(8) as threads:
        answers = threads.map(lambda _: ask(deployment, *args, **kwargs), range(times))
        return Counter(answer.status for answer in answers)


def counted(deployment: Deployment, metric: str, route: str) -> float:
    return deployment.edge.metric(f"{metric}{{", f'route="{route}"')


def events(deployment: Deployment, **facts: str) -> list[dict[str, Any]]:
    segments = (deployment.edge.config_file.parent / "audit").glob("*.jsonl*")
    lines = [line for segment in segments for line in segment.read_text().splitlines()]
    return [event for event in map(json.loads, lines) if facts.items() <= event.items()]


def pids(deployment: Deployment) -> dict[int, int]:
    """Return the process of each worker."""
    return {int(number): int(pid) for number, pid in STARTED.findall(deployment.edge.log())}


def kill(deployment: Deployment, number: int) -> None:
    pid = pids(deployment)[number]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not is_alive(pid))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def open_streams(deployment: Deployment, stack: ExitStack) -> list[socket.socket]:
    """Begin streams until every worker carries one."""
    before = {event["id"] for event in events(deployment, kind="grant")}
    streams: list[socket.socket] = []
    while len(streams) < 200:
        sock = stack.enter_context(raw_query(deployment.base_url, BIG, TOKEN))
        assert sock.recv(12) == b"HTTP/1.1 200"
        streams.append(sock)
        grants = [event for event in events(deployment, kind="grant") if event["id"] not in before]
        if len({event["replica"] for event in grants}) == WORKERS:
            return streams
    raise AssertionError("one worker takes everything")


def test_requests_are_shared_out_and_each_grant_is_in_the_audit_log_once(shared):
    url = f"{shared.base_url}/shares/sample/schemas/sales/tables/orders/query"
    asked: list[str] = []

    def query(request_id: str) -> int:
        return request(url, token=TOKEN, method="POST", body=b"{}", x_request_id=request_id).status

    def grants() -> list[dict[str, Any]]:
        return [event for event in events(shared, kind="grant") if event["request_id"].startswith("granted-")]

    def every_worker_has_granted() -> bool:
        fresh = [f"granted-{len(asked) + number}" for number in range(100)]
        with ThreadPoolExecutor(8) as threads:
            assert set(threads.map(query, fresh)) == {200}
        asked.extend(fresh)
        return len({event["replica"] for event in grants()}) == WORKERS

    eventually(every_worker_has_granted)
    assert sorted(event["request_id"] for event in grants()) == sorted(asked)
    assert len({event["id"] for event in grants()}) == len(asked)


def test_a_recipient_has_one_bucket_whichever_worker_answers(shared):
    assert ask_often(shared, 3 * BURST, "slc_slow", "throttled") == {200: BURST, 429: 2 * BURST}
    assert ask(shared).status == 200
    eventually(lambda: len(events(shared, request_id="throttled")) == 3 * BURST)

    def every_worker_has_answered() -> bool:
        assert ask_often(shared, BURST, "slc_slow", "throttled") == {429: BURST}
        return len({event["replica"] for event in events(shared, request_id="throttled")}) == WORKERS

    eventually(every_worker_has_answered)


def test_metrics_are_the_sum_of_all_workers(shared):
    # No other test uses this route: the workers report what they count with a delay.
    route = "/shares/{share}"
    before = counted(shared, "sluice_http_requests_total", route)
    assert ask_often(shared, 100, path="/shares/sample") == {200: 100}

    eventually(lambda: counted(shared, "sluice_http_requests_total", route) == before + 100)
    assert counted(shared, "sluice_http_request_duration_seconds_count", route) == before + 100
    assert shared.edge.metric("sluice_build_info{") == 1


def test_a_worker_that_is_killed_is_replaced_and_its_counts_stay(shared):
    # No other test uses this route.
    route = "/shares/{share}/schemas"
    before = counted(shared, "sluice_http_requests_total", route)
    ask_often(shared, 50, path="/shares/sample/schemas")
    eventually(lambda: counted(shared, "sluice_http_requests_total", route) == before + 50)
    restarts, old = shared.edge.metric("sluice_worker_restarts_total"), pids(shared)

    kill(shared, 1)
    assert Counter(ask(shared, path="/shares/sample/schemas").status for _ in range(50)) == {200: 50}
    assert request(f"{shared.edge.metrics_url}/readyz").status == 200
    wait_for_workers(shared)

    assert pids(shared)[1] != old[1]
    assert pids(shared)[2] == old[2]
    assert shared.edge.metric("sluice_worker_restarts_total") == restarts + 1
    assert "worker 1 was killed by signal 9" in shared.edge.log()
    eventually(lambda: counted(shared, "sluice_http_requests_total", route) == before + 100)


def test_streams_of_the_other_worker_survive_a_kill(shared):
    already = {event["id"] for event in events(shared, kind="grant")}
    with ExitStack() as stack:
        streams = open_streams(shared, stack)
        grants = [event for event in events(shared, kind="grant") if event["id"] not in already]
        kill(shared, 2)
        finished = [read_to_end(sock).endswith(FINAL_CHUNK) for sock in streams]

    assert finished.count(True) in Counter(event["replica"] for event in grants).values()
    assert 0 < finished.count(True) < len(streams)
    wait_for_workers(shared)
    # What the killed one had granted is still there, once, and closed by the one that took its place.
    assert len(events(shared, kind="grant")) == len(already) + len(streams)


def test_every_worker_takes_up_a_changed_file_and_a_hangup(shared, with_slow):
    reloaded = ('sluice_config_reloads_total{outcome="success"}',)
    before = shared.edge.metric(*reloaded)
    wider = [
        entry | {"rate": rate(30)} if entry["name"] == "other" else entry for entry in with_slow["recipients"]
    ]
    shared.rewrite({"recipients": wider})
    eventually(lambda: shared.edge.metric(*reloaded) == before + WORKERS)
    assert ask_often(shared, 60, "slc_other") == {200: 30, 429: 30}

    shared.edge.process.send_signal(signal.SIGHUP)
    eventually(lambda: shared.edge.metric(*reloaded) == before + 2 * WORKERS)
    assert ask(shared).status == 200


def test_a_hangup_while_a_worker_starts_ends_nothing(shared):
    restarts = shared.edge.metric("sluice_worker_restarts_total")
    kill(shared, 1)
    stop = threading.Event()

    def hang_up() -> None:
        while not stop.wait(0.02):
            shared.edge.process.send_signal(signal.SIGHUP)

    thread = threading.Thread(target=hang_up)
    thread.start()
    try:
        wait_for_workers(shared)
    finally:
        stop.set()
        thread.join()
    assert shared.edge.metric("sluice_worker_restarts_total") == restarts + 1


def test_a_taken_port_is_a_clear_error(shared):
    result = subprocess.run(
        [sys.executable, "-m", "gateway", "serve", "--config", str(shared.edge.config_file)],
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    assert result.returncode == 1
    assert "the port is taken" in result.stderr
    assert "Traceback" not in result.stderr


def test_all_workers_finish_their_streams_before_they_stop(shared):
    workers = pids(shared)
    with ExitStack() as stack:
        streams = open_streams(shared, stack)
        shared.edge.process.send_signal(signal.SIGTERM)
        eventually(lambda: request(f"{shared.edge.metrics_url}/readyz").status == 503)
        eventually(lambda: refuses(shared))
        answers = [read_to_end(sock) for sock in streams]

    assert all(answer.endswith(FINAL_CHUNK) for answer in answers)
    assert {unchunked(answer).count(b'{"file":') for answer in answers} == {10_000}
    assert shared.edge.process.wait(120) == 0
    assert not any(is_alive(pid) for pid in workers.values())


def test_workers_do_not_outlive_their_supervisor(shared):
    workers = pids(shared)
    shared.edge.process.kill()

    eventually(lambda: not any(is_alive(pid) for pid in workers.values()))
    assert refuses(shared)


def refuses(deployment: Deployment) -> bool:
    try:
        ask(deployment)
    except (ConnectionRefusedError, ConnectionResetError):
        return True
    return False
