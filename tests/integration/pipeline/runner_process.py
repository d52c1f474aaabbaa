"""The runner as the gateway's worker starts it, in a process that a test can kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.repository import ROOT
from tests.spark import FOR_SPEED
from tests.waiting import eventually

SPARK = {"master": "local[2]", "conf": {**FOR_SPEED, "spark.driver.memory": "1g"}}
# Longer than a JVM takes to stop on a busy machine.
_WAIT_SECONDS = 600


class RunnerProcess:
    """Takes requests, and hands out replies as they come."""

    def __init__(self, log: Path) -> None:
        with log.open("wb") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pipeline.runner"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=ROOT,
                env={**os.environ, "PYSPARK_PYTHON": sys.executable},
                start_new_session=True,
            )
        self.log = log

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, plan: Mapping[str, Any], request_id: str = "1", **more: Any) -> None:
        request = {"id": request_id, "job": "view", "plan": plan, "spark": SPARK} | more
        self.send_line(json.dumps(request))

    def send_line(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def replies(self) -> Iterator[dict[str, Any]]:
        """Yield replies until that which ends a request; whatever else comes out fails the test."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            reply: dict[str, Any] = json.loads(line)
            yield reply
            if reply["event"] != "progress":
                return

    def answer(self) -> dict[str, Any]:
        """Return the reply that ends a request."""
        for reply in self.replies():
            if reply["event"] != "progress":
                return reply
        raise self._exited("it had answered")

    def wait_for(self, message: str) -> None:
        """Wait until the job tells that it is about to do something."""
        for reply in self.replies():
            if reply["event"] != "progress":
                raise AssertionError(f"the job was over before {message!r}: {reply}\n{self.log.read_text()}")
            if reply["message"] == message:
                return
        raise self._exited(repr(message))

    def _exited(self, before: str) -> AssertionError:
        return AssertionError(f"the runner exited before {before}\n{self.log.read_text()}")

    def kill(self) -> None:
        """Kill the runner alone, and wait until the JVM that it has started has gone after it."""
        started = children_of(self.pid)
        self._process.kill()
        self._process.wait()
        eventually(lambda: not any(map(_is_alive, started)), "the JVM has ended", seconds=_WAIT_SECONDS)

    def close(self) -> int:
        """End the requests, and return the status that the runner exits with."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(_WAIT_SECONDS)

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                stream and stream.close()


@contextmanager
def running_runner(directory: Path) -> Iterator[RunnerProcess]:
    runner = RunnerProcess(directory / f"runner-{time.monotonic_ns()}.log")
    try:
        yield runner
    finally:
        runner.end()


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started, and those that they have."""
    found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return found + [below for child in found for below in children_of(child)]


@contextmanager
def stopped(group: int) -> Iterator[None]:
    """Stop all processes of a group until the block is left.

    A copy of their files that is made meanwhile is what SIGKILL at this moment would have left.
    """
    os.killpg(group, signal.SIGSTOP)
    try:
        eventually(lambda: all(map(_is_stopped, [group, *children_of(group)])), "all stop", pause=0.001)
        yield
    finally:
        os.killpg(group, signal.SIGCONT)


def _is_stopped(pid: int) -> bool:
    # A thread that has forked is not stopped before its child goes on, which is. A process that has exited
    # stays a zombie, as one that Spark's start script leaves to the JVM.
    try:
        return all(_state(thread) in "TDZ" for thread in Path(f"/proc/{pid}/task").iterdir())
    except FileNotFoundError:
        return False


def _is_alive(pid: int) -> bool:
    try:
        # A zombie that nobody waits for is as good as gone.
        return _state(Path(f"/proc/{pid}")) != "Z"
    except FileNotFoundError:
        return False


def _state(process: Path) -> str:
    return (process / "stat").read_text().rpartition(")")[2].split()[0]
