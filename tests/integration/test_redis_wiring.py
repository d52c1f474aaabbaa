"""A gateway with a Redis: only the services that issue or sign hold a connection to it."""

from __future__ import annotations

import urllib.request

import pytest

from tests.components import VALKEY
from tests.stores.redis import running_server, valkey_program
from tests.waiting import eventually

pytestmark = pytest.mark.component(VALKEY)


@pytest.fixture
def server(tmp_path):
    with running_server(valkey_program(), tmp_path / "valkey") as server:
        yield server


def test_only_presign_and_vending_use_it(deploy, server):
    with deploy(cache={"redis": {"url": server.url, "timeout": "5s"}}) as deployment:
        processes = deployment.processes
        users = processes.keys() & {"presign", "vending"} or processes.keys()
        eventually(lambda: all(processes[name].metric("sluice_cache_redis_up") == 1 for name in users))
        others = [processes[name].metric("sluice_cache_redis_up") for name in processes.keys() - users]
        clients = len(server.client().client_list()) - 1
    assert not any(others)
    assert clients == len(users)


def test_a_redis_that_is_not_there_keeps_nothing_from_starting(deploy):
    with deploy(cache={"redis": {"url": "unix:///nonexistent/redis.sock"}}) as deployment:
        texts = [metrics_of(process.metrics_url) for process in deployment.processes.values()]
    assert any("\nsluice_cache_redis_up 0.0" in text for text in texts)


def metrics_of(url: str) -> str:
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as response:
        return str(response.read().decode())
