"""A process that is the first of its container, as where no init stands before it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.waiting import eventually

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
        held = eventually(lambda: _open_if_read(configuration), "the configuration is read")
        try:
            yield process
        finally:
            os.close(held)
            process.kill()


def test_a_container_that_is_stopped_while_it_starts_ends_at_once(starting):
    first = int(Path(f"/proc/{starting.pid}/task/{starting.pid}/children").read_text())
    # Python runs a handler after a system call that the signal interrupted. A signal just before the call
    # would be handled after it, and this read never returns.
    state = Path(f"/proc/{first}/wchan")
    eventually(lambda: "pipe_read" in state.read_text(), "the process waits in its read")
    os.kill(first, signal.SIGTERM)

    assert starting.wait(60) == 128 + signal.SIGTERM


def _open_if_read(fifo: Path) -> int | None:
    with suppress(OSError):
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    return None
