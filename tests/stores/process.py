"""A server process that a test starts, and that dies with the test run however that ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.waiting import START_SECONDS, eventually

_TRIES = 3

Started = TypeVar("Started")


class EndedEarly(Exception):
    """A server ended before it was ready, as it does when another program has taken its port."""


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """One running server, with a file that has its output."""

    process: subprocess.Popen[bytes]
    log_file: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def is_running(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """End it at once, with all that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        # An init puts what it starts into a group of its own, but not into another session.
        for pid in _session(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")


@contextmanager
def running(
    command: Sequence[str | Path],
    *,
    log_file: Path,
    ready: Callable[[], bool],
    env: Mapping[str, str] | None = None,
    timeout: float = START_SECONDS,
) -> Iterator[ServerProcess]:
    """Run a command until the block is left; it is entered when ``ready`` says so."""
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **(env or {})},
            # A session of its own, so that what it starts is ended with it, and Ctrl-C is the test's alone.
            start_new_session=True,
        )
    server = ServerProcess(process, log_file)
    with _killed_with_us(server):
        _wait_until_ready(server, ready, timeout)
        yield server


@contextmanager
def retried(start: Callable[[], AbstractContextManager[Started]]) -> Iterator[Started]:
    """Enter what ``start`` gives, anew on other ports when the server ended at once."""
    with ExitStack() as stack:
        yield _enter(stack, start)


def listens(port: int) -> bool:
    """Say whether something takes connections on a port of loopback."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def _enter(stack: ExitStack, start: Callable[[], AbstractContextManager[Started]]) -> Started:
    for _ in range(_TRIES - 1):
        # A port that was free when it was looked at can be taken when the server gets to it.
        with suppress(EndedEarly):
            return stack.enter_context(start())
    return stack.enter_context(start())


@contextmanager
def _killed_with_us(server: ServerProcess) -> Iterator[None]:
    # The pipe closes when this process ends, even when it is killed, and then the watcher kills the server.
    watcher = subprocess.Popen(
        [
            "/bin/sh",
            "-c",
            'read _; { kill -9 "-$1"; pkill -9 -s "$1"; } 2>/dev/null',
            "watcher",
            str(server.pid),
        ],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield
    finally:
        # The watcher goes first: once the server is gone, its number may be given to another process.
        watcher.kill()
        watcher.communicate()
        server.kill()


def _session(leader: int) -> Iterator[int]:
    """Yield the processes of a session, where the system shows them."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name in parentheses may hold anything; state, parent, group and session follow it.
            if int(stat.read_text(errors="replace").rpartition(")")[2].split()[3]) == leader:
                yield int(stat.parent.name)


def _wait_until_ready(server: ServerProcess, ready: Callable[[], bool], timeout: float) -> None:
    def is_up() -> bool:
        is_ready = ready()
        # Checked after the port: only while our process lives is it our process that listens there.
        if not server.is_running():
            raise EndedEarly(
                f"{server.process.args!r} ended with {server.process.returncode}\n{end_of_log()}"
            )
        return is_ready

    def end_of_log() -> str:
        return server.log()[-4000:]

    eventually(is_up, lambda: f"{server.process.args!r} is ready\n{end_of_log()}", seconds=timeout)
