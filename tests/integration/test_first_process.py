"""A process that is the first of its container, as where no init stands before it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

# A namespace of processes takes root.
pytestmark = pytest.mark.system


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    """A file that is never read to its end: who starts with it goes on starting."""
    file = tmp_path / "server.yaml"
    os.mkfifo(file)
    return file


@pytest.fixture(params=[["serve"], ["pipeline", "worker"]], ids=" ".join)
def starting(configuration: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "gateway", *request.param, "--config", str(configuration)]
    with subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", *command]) as process:
        held = _open_once_somebody_reads(configuration)
        try:
            yield process
        finally:
            os.close(held)
            process.kill()


def test_a_container_that_is_stopped_while_it_starts_ends_at_once(starting):
    children = Path(f"/proc/{starting.pid}/task/{starting.pid}/children")
    os.kill(int(children.read_text()), signal.SIGTERM)

    assert starting.wait(10) == 128 + signal.SIGTERM


def _open_once_somebody_reads(fifo: Path) -> int:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(OSError):
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        time.sleep(0.05)
    raise TimeoutError("nobody reads the configuration")
