"""Deployments of the sample tables, in one process and in five; and a Redis, with a proxy before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from gateway.commands.bearer import hash_of
from gateway.demo.sample import SampleCatalog
from tests.components import ALL_IN_ONE, SPLIT
from tests.deployments import Deployment, Settings, all_in_one, split
from tests.sample import shared_sample
from tests.stores.redis import PROGRAMS, Server, running_server
from tests.stores.toxiproxy import Toxiproxy, running_toxiproxy

TOKEN = "slc_reader"

Deploy = Callable[..., AbstractContextManager[Deployment]]


@pytest.fixture(scope="session")
def sample(tmp_path_factory) -> SampleCatalog:
    return shared_sample(tmp_path_factory)


@pytest.fixture(scope="session")
def settings(sample) -> Settings:
    return {
        "version": 1,
        "shares": sample.to_shares(),
        "storages": [{"name": "sample", "prefix": str(sample.directory), "vendor": "local"}],
        "recipients": [{"name": "reader", "tokens": [{"hash": hash_of(TOKEN)}], "shares": "*"}],
        "limits": {"rate": {"requestsPerSecond": 100_000, "burst": 100_000}},
    }


@pytest.fixture(
    params=[
        pytest.param(all_in_one, id="all-in-one", marks=pytest.mark.component(ALL_IN_ONE)),
        pytest.param(split, id="split", marks=pytest.mark.component(SPLIT)),
    ]
)
def deploy(request, tmp_path, settings) -> Deploy:
    """Starts the gateway with the sample, and other settings where a test gives them."""

    def start(**changes: Any) -> AbstractContextManager[Deployment]:
        kind: Callable[[Path, Settings], AbstractContextManager[Deployment]] = request.param
        return kind(tmp_path, settings | changes)

    return start


@pytest.fixture
def deployment(deploy) -> Iterator[Deployment]:
    with deploy() as running:
        yield running


@pytest.fixture(scope="module", params=PROGRAMS)
def server_of_module(request, tmp_path_factory) -> Iterator[Server]:
    with running_server(request.param(), tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def server(server_of_module: Server) -> Server:
    """A Redis with nothing in it, and room for everything."""
    client = server_of_module.client()
    client.flushall()
    client.config_set("maxmemory", 0)
    return server_of_module


@pytest.fixture
def proxy(server, tmp_path) -> Iterator[Toxiproxy]:
    """The way to the Redis, that faults can be put on."""
    with running_toxiproxy(tmp_path, server.port) as proxy:
        yield proxy
