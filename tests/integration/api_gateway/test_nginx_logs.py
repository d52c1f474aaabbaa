"""nginx writes its logs however it is started, and after a reload too."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest

from tests.certificates import Authority
from tests.components import NGINX
from tests.integration.api_gateway.conftest import new_ports
from tests.proxies.front import PREFIX, Front, Ports
from tests.proxies.front_nginx import AS_WHO_STARTS_IT, nginx_command, place_nginx
from tests.stores.process import ServerProcess, listens
from tests.waiting import eventually

pytestmark = [pytest.mark.component(NGINX), pytest.mark.system]


class Output:
    """Where a process manager takes what a program writes: a socket, as systemd's journal has, or a pipe."""

    def __init__(self, kind: str, stack: ExitStack) -> None:
        self.text = b""
        if kind == "socket":
            ours, theirs = socket.socketpair()
            reading, self.writing = ours.detach(), theirs.detach()
        else:
            reading, self.writing = os.pipe()
        thread = Thread(target=self._read, args=(reading,), daemon=True)
        stack.callback(thread.join, 10)
        stack.callback(self.close)
        thread.start()

    def close(self) -> None:
        """Leave it to those who have been given it."""
        if self.writing >= 0:
            os.close(self.writing)
            self.writing = -1

    def _read(self, descriptor: int) -> None:
        with suppress(OSError), os.fdopen(descriptor, "rb", buffering=0) as stream:
            while piece := stream.read(65536):
                self.text += piece


@pytest.fixture
def output(request) -> Iterator[Output]:
    with ExitStack() as stack:
        yield Output(request.param, stack)


@dataclass(frozen=True, slots=True)
class Placed:
    """One that is in place, and does not run yet."""

    ports: Ports
    directory: Path
    authority: Authority

    @property
    def command(self) -> list[str]:
        return [str(part) for part in nginx_command(self.directory)]

    @property
    def access_log(self) -> Path:
        return self.directory / "log" / "access.log"

    @property
    def error_log(self) -> Path:
        return self.directory / "log" / "error.log"


@pytest.fixture
def placed(two_recording_edges, authority, tmp_path) -> Placed:
    ports, directory = new_ports(), tmp_path / "front"
    place_nginx(directory, ports, [edge.address for edge in two_recording_edges], authority)
    return Placed(ports, directory, authority)


@contextmanager
def started(placed: Placed, how: str, output: Output) -> Iterator[Front]:
    """Start it with some global directives, and end it however the block is left."""
    process = subprocess.Popen(
        [*placed.command, "-g", AS_WHO_STARTS_IT + how],
        stdin=subprocess.DEVNULL,
        stdout=output.writing,
        stderr=output.writing,
        start_new_session=True,
    )
    output.close()
    pid_file = placed.directory / "nginx.pid"
    try:
        eventually(lambda: listens(placed.ports.recipients))
        server = ServerProcess(process, placed.error_log)
        yield Front(placed.ports, placed.directory, placed.authority, server)
    finally:
        with suppress(FileNotFoundError, ProcessLookupError, ValueError):
            os.kill(int(pid_file.read_text()), signal.SIGTERM)
        # The one that was started has ended before, or ends with it.
        process.wait(60)
        eventually(lambda: not pid_file.exists())


def paths_in(log: str) -> list[str]:
    return [json.loads(line)["path"] for line in log.splitlines() if line.startswith("{")]


def ask_before_and_after_a_reload(front: Front) -> None:
    assert front.ask(f"{PREFIX}/before").status == 200
    before = workers(front)
    subprocess.run([*nginx_command(front.directory), "-s", "reload"], check=True, capture_output=True)
    eventually(lambda: not before & workers(front))
    assert front.ask(f"{PREFIX}/after").status == 200


def workers(front: Front) -> set[str]:
    master = (front.directory / "nginx.pid").read_text().strip()
    return set(Path(f"/proc/{master}/task/{master}/children").read_text().split())


@pytest.mark.parametrize("output", ["socket", "pipe"], indirect=True)
@pytest.mark.parametrize("how", ["", "daemon on; master_process on;", "daemon off;"])
def test_its_files_have_what_was_asked_before_and_after_a_reload(placed: Placed, output, how: str) -> None:
    with started(placed, how, output) as front:
        ask_before_and_after_a_reload(front)
        eventually(lambda: paths_in(placed.access_log.read_text()) == [f"{PREFIX}/before", f"{PREFIX}/after"])
    assert b"[emerg]" not in output.text
    assert placed.error_log.exists()


@pytest.mark.parametrize("output", ["pipe"], indirect=True)
def test_in_a_container_its_output_has_them(placed: Placed, output) -> None:
    placed.access_log.symlink_to("/dev/stdout")
    placed.error_log.symlink_to("/dev/stderr")
    with started(placed, "daemon off;", output) as front:
        ask_before_and_after_a_reload(front)
        eventually(lambda: paths_in(output.text.decode()) == [f"{PREFIX}/before", f"{PREFIX}/after"])
