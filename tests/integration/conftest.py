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
Kind = Callable[[Path, Settings], AbstractContextManager[Deployment]]


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
        # Longer than a busy machine takes for the streams that a test waits for.
        "grace": "90s",
    }


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(all_in_one, id="all-in-one", marks=pytest.mark.component(ALL_IN_ONE)),
        pytest.param(split, id="split", marks=pytest.mark.component(SPLIT)),
    ],
)
def deployment_kind(request) -> Kind:
    kind: Kind = request.param
    return kind


@pytest.fixture
def deploy(deployment_kind: Kind, tmp_path, settings) -> Deploy:
    """Starts the gateway with the sample, and other settings where a test gives them."""

    def start(**changes: Any) -> AbstractContextManager[Deployment]:
        return deployment_kind(tmp_path, settings | changes)

    return start


@pytest.fixture(scope="module")
def deployment(deployment_kind, tmp_path_factory, settings) -> Iterator[Deployment]:
    """A deployment with the sample for all tests of a module; each leaves it as it found it."""
    with deployment_kind(tmp_path_factory.mktemp("deployment"), settings) as running:
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
