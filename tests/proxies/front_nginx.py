"""nginx with the configuration of ``deploy/nginx``."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.certificates import Authority
from tests.installed import installed
from tests.proxies.front import EdgeAddress, Front, Ports, place
from tests.stores.process import listens, running
from tests.waiting import eventually

# Where a package has nginx keep its temporary files is not for everybody to write.
_TEMPORARY = "".join(
    f"    {kind}_temp_path temp/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
)
# Started by root, its workers would be another user, to whom a test's directory is closed.
AS_WHO_STARTS_IT = "user root; " if os.geteuid() == 0 else ""


@contextmanager
def nginx_front(
    directory: Path,
    ports: Ports,
    edges: Sequence[EdgeAddress],
    authority: Authority,
    *,
    changes: Mapping[str, str] | None = None,
) -> Iterator[Front]:
    place_nginx(directory, ports, edges, authority, changes)
    # As in nginx' own images.
    (directory / "log" / "access.log").symlink_to("/dev/stdout")
    (directory / "log" / "error.log").symlink_to("/dev/stderr")
    with running(
        [*nginx_command(directory), "-g", f"{AS_WHO_STARTS_IT}daemon off;"],
        log_file=directory / "output",
        ready=lambda: listens(ports.recipients) and listens(ports.health),
    ) as server:
        yield Front(ports, directory, authority, server)


def nginx_command(directory: Path) -> list[str | Path]:
    return [installed("nginx"), "-e", "stderr", "-p", directory, "-c", directory / "nginx.conf"]


def place_nginx(
    directory: Path,
    ports: Ports,
    edges: Sequence[EdgeAddress],
    authority: Authority,
    changes: Mapping[str, str] | None = None,
) -> None:
    """Write the shipped files with other paths, addresses and ports."""
    own = {
        "worker_processes auto": "worker_processes 1",
        "/run/nginx.pid": "nginx.pid",
        "/var/log/nginx/": f"{directory}/log/",
        "http {\n": f"http {{\n{_TEMPORARY}",
        "listen 8443": f"listen 127.0.0.1:{ports.recipients}",
        "listen 8081": f"listen 127.0.0.1:{ports.health}",
    }
    place("nginx", directory, authority, own | dict(changes or {}))
    put_nginx_edges(directory, edges)
    for name in ("temp", "log"):
        (directory / name).mkdir(exist_ok=True)


def reload_nginx(front: Front) -> None:
    """Have it read its files again, and wait until only those take connections that have."""
    before = _workers(front)
    front.server.process.send_signal(signal.SIGHUP)
    eventually(lambda: not before & _workers(front))


def _workers(front: Front) -> set[str]:
    """Return the processes that take connections; the others say in their titles that they are leaving."""
    master = front.server.pid
    found = Path(f"/proc/{master}/task/{master}/children").read_text().split()
    return {pid for pid in found if not _is_leaving(pid)}


def _is_leaving(pid: str) -> bool:
    try:
        return b"shutting down" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return True


def put_nginx_edges(directory: Path, edges: Sequence[EdgeAddress]) -> None:
    """Put other edges into the place of the two that are shipped."""
    file = directory / "edges.conf"
    kept = [line for line in file.read_text().splitlines() if not line.startswith("server ")]
    options = "max_fails=2 fail_timeout=1s"
    assert options in file.read_text()
    kept += [f"server 127.0.0.1:{edge.port} {options};" for edge in edges]
    file.write_text("\n".join(kept) + "\n")
