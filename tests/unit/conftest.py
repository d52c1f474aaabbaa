"""A unit test reaches nothing outside its process."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import pytest_socket


@pytest.fixture(autouse=True)
def _no_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each TLS client reads the authorities that the system trusts, which takes longer than most tests.
    monkeypatch.setenv("SSL_CERT_FILE", os.devnull)


@pytest.fixture(autouse=True)
def _no_sockets() -> Iterator[None]:
    # An event loop wakes itself through a pair of unix sockets.
    pytest_socket.disable_socket(allow_unix_socket=True)
    yield
    pytest_socket.enable_socket()
