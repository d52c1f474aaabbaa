"""The gateways that the HTTP suite runs against.

Each entry of ``DEPLOYMENTS`` starts one and gives the facts of it; the suite runs over all of them, and knows
nothing of how they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from tests.contract.http.client import Client
from tests.contract.http.deployments import fakes
from tests.contract.http.facts import Gateway


@contextmanager
def _fakes() -> Iterator[Gateway]:
    with fakes() as running:
        yield running.gateway


DEPLOYMENTS: dict[str, Callable[[], AbstractContextManager[Gateway]]] = {"fakes": _fakes}


@pytest.fixture(scope="session", params=list(DEPLOYMENTS))
def gateway(request: pytest.FixtureRequest) -> Iterator[Gateway]:
    with DEPLOYMENTS[request.param]() as running:
        yield running


@pytest.fixture
def client(gateway: Gateway) -> Client:
    return Client(gateway)
