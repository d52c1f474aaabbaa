"""The deployments that the HTTP suite runs against.

A test runs on the fakes and on the split deployment. A test marked ``smoke`` runs on the all-in-one process
too. The smoke tests cover each endpoint and each class of response at least once. The two deployments differ
in the channel between their services, every kind of which tests/contract/test_channel.py covers, and in their
keys: the all-in-one process derives all of them from one secret. The smoke tests therefore also cover every
token and credential of another recipient, table or kind.

A module that starts a deployment with settings of its own does so in a fixture named ``world``, which takes
the function that starts it as ``request.param``. Its tests run on the split deployment, and on the all-in-one
process if they are marked ``smoke``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.components import ALL_IN_ONE, SPLIT
from tests.contract.http.client import Client
from tests.contract.http.deployments import fakes
from tests.contract.http.facts import Gateway
from tests.contract.http.processes import Lake, Start, build_lake, gateway_in
from tests.deployments import all_in_one, split
from tests.fakes.openapi import one_openapi_document  # noqa: F401 -- a fixture of all tests below

PROCESSES: dict[str, Start] = {"split": split, "all-in-one": all_in_one}
_ON_SPLIT = [pytest.mark.slow, pytest.mark.component(SPLIT)]
_ON_ALL_IN_ONE = [pytest.mark.slow, pytest.mark.component(ALL_IN_ONE)]
# The all-in-one process comes last: tests that are not marked ``smoke`` leave it out.
_PARAMETERS = {
    "gateway": [
        pytest.param("fakes"),
        pytest.param("split", marks=_ON_SPLIT),
        pytest.param("all-in-one", marks=_ON_ALL_IN_ONE),
    ],
    "world": [
        pytest.param(split, id="split", marks=_ON_SPLIT),
        pytest.param(all_in_one, id="all-in-one", marks=_ON_ALL_IN_ONE),
    ],
}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "smoke: an HTTP contract test that runs on the all-in-one process too")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    is_smoke = metafunc.definition.get_closest_marker("smoke") is not None
    for name, parameters in _PARAMETERS.items():
        if name in metafunc.fixturenames:
            chosen = parameters if is_smoke else parameters[:-1]
            metafunc.parametrize(name, chosen, indirect=True)


@pytest.fixture(scope="session")
def lake() -> Iterator[Lake]:
    with tempfile.TemporaryDirectory() as name:
        yield build_lake(Path(name) / "lake")


@pytest.fixture(scope="session")
def deployed(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Gateway]]:
    """Starts each deployment at its first use, and stops all of them at the end of the run."""
    with ExitStack() as stack:

        @cache
        def start(kind: str) -> Gateway:
            if kind == "fakes":
                return stack.enter_context(fakes()).gateway
            # The fakes have no need of the tables, which take seconds to build.
            return stack.enter_context(gateway_in(PROCESSES[kind], request.getfixturevalue("lake")))

        yield start


@pytest.fixture(scope="session")
def gateway(request: pytest.FixtureRequest, deployed: Callable[[str], Gateway]) -> Gateway:
    return deployed(request.param)


@pytest.fixture
def client(gateway: Gateway) -> Client:
    return Client(gateway)
