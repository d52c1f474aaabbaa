"""Envoy, from PyPI."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from tests.ports import free_ports
from tests.proxies.proxy import LISTENERS, Proxy, configuration
from tests.stores.process import listens, retried, running


def envoy_program() -> Path:
    spec = find_spec("envoy")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "_bin" / "envoy"


@contextmanager
def running_envoy(directory: Path, upstream: int) -> Iterator[Proxy]:
    @contextmanager
    def start() -> Iterator[Proxy]:
        admin, *others = free_ports(1 + len(LISTENERS))
        ports = dict(zip(LISTENERS, others, strict=True))
        file = configuration("envoy.yaml", directory, upstream=upstream, admin=admin, **ports)
        # Its shared memory is named by this number: two of the same do not start.
        base = secrets.randbelow(2**31)
        with running(
            [envoy_program(), "-c", file, "--concurrency", "1", "--base-id", str(base), "-l", "warning"],
            log_file=directory / "envoy.log",
            ready=lambda: all(map(listens, ports.values())),
        ):
            yield Proxy(ports)

    directory.mkdir(parents=True, exist_ok=True)
    with retried(start) as proxy:
        yield proxy
