"""toxiproxy before a server: what is between two machines goes wrong on demand."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.installed import installed
from tests.ports import free_ports
from tests.stores.process import listens, retried, running

_NAME = "redis"


@dataclass(frozen=True, slots=True)
class Toxiproxy:
    """One proxy: what is sent to ``port`` arrives at the server, by way of the toxics."""

    port: int
    control: int

    def add(self, kind: str, **attributes: int) -> None:
        toxic = {"name": kind, "type": kind, "stream": "downstream", "attributes": attributes}
        self._call(f"proxies/{_NAME}/toxics", toxic)

    def remove(self, kind: str) -> None:
        self._call(f"proxies/{_NAME}/toxics/{kind}", None, method="DELETE")

    def set_enabled(self, *, enabled: bool) -> None:
        self._call(f"proxies/{_NAME}", {"enabled": enabled})

    def create(self, upstream: int) -> None:
        listen, target = f"127.0.0.1:{self.port}", f"127.0.0.1:{upstream}"
        self._call("proxies", {"name": _NAME, "listen": listen, "upstream": target})

    def _call(self, path: str, content: object, method: str = "POST") -> None:
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.control}/{path}", data=data, method=method)
        # A toxic is removed once it has passed on what it holds, which takes long on a busy machine.
        with urllib.request.urlopen(request, timeout=60) as response:
            response.read()


@contextmanager
def running_toxiproxy(directory: Path, upstream: int) -> Iterator[Toxiproxy]:
    program = installed("toxiproxy")

    @contextmanager
    def start() -> Iterator[Toxiproxy]:
        control, port = free_ports(2)
        with running(
            [program, "-host", "127.0.0.1", "-port", str(control)],
            log_file=directory / "toxiproxy.log",
            ready=lambda: listens(control),
        ):
            proxy = Toxiproxy(port, control)
            proxy.create(upstream)
            yield proxy

    with retried(start) as proxy:
        yield proxy
