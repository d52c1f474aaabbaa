"""nginx, from apt."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.installed import installed
from tests.ports import free_ports
from tests.proxies.proxy import LISTENERS, Proxy, configuration
from tests.stores.process import listens, retried, running


@contextmanager
def running_nginx(directory: Path, upstream: int) -> Iterator[Proxy]:
    program = installed("nginx")

    @contextmanager
    def start() -> Iterator[Proxy]:
        ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
        file = configuration("nginx.conf", directory, upstream=upstream, **ports)
        # Started by root, its workers would be another user, to whom this directory is closed.
        user = "user root; " if os.geteuid() == 0 else ""
        with running(
            [program, "-e", "stderr", "-p", directory, "-c", file, "-g", f"{user}daemon off;"],
            log_file=directory / "nginx.log",
            ready=lambda: all(map(listens, ports.values())),
        ):
            yield Proxy(ports)

    (directory / "temp").mkdir(parents=True)
    with retried(start) as proxy:
        yield proxy
