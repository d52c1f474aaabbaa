"""The gateways that the HTTP suite runs against.

Each entry of ``DEPLOYMENTS`` starts one and gives the facts of it; the suite runs over all of them, and knows
nothing of how they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from tests.components import ALL_IN_ONE, SPLIT
from tests.contract.http.client import Client
from tests.contract.http.deployments import fakes
from tests.contract.http.facts import Gateway
from tests.contract.http.processes import gateway_in
from tests.deployments import all_in_one, split


@contextmanager
def _fakes() -> Iterator[Gateway]:
    with fakes() as running:
        yield running.gateway


DEPLOYMENTS: dict[str, Callable[[], AbstractContextManager[Gateway]]] = {
    "fakes": _fakes,
    "all-in-one": lambda: gateway_in(all_in_one),
    "split": lambda: gateway_in(split),
}


@pytest.fixture(
    scope="session",
    params=[
        "fakes",
        pytest.param("all-in-one", marks=[pytest.mark.slow, pytest.mark.component(ALL_IN_ONE)]),
        pytest.param("split", marks=[pytest.mark.slow, pytest.mark.component(SPLIT)]),
    ],
)
def gateway(request: pytest.FixtureRequest) -> Iterator[Gateway]:
    with DEPLOYMENTS[request.param]() as running:
        yield running


@pytest.fixture
def client(gateway: Gateway) -> Client:
    return Client(gateway)
