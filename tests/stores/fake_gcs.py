"""fake-gcs-server: Google's storage for development. It lets everybody in, so alone it proves nothing."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from tests.installed import installed
from tests.ports import free_ports
from tests.stores.process import ServerProcess, listens, retried, running


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeGcs:
    """A running server."""

    endpoint: str
    process: ServerProcess

    def make_bucket(self, name: str) -> str:
        """Create a bucket unless it is there, and return its name."""
        try:
            self._post("/storage/v1/b?project=test", json.dumps({"name": name}).encode(), "application/json")
        except urllib.error.HTTPError as exc:
            exc.close()
            if exc.code != 409:
                raise
        return name

    def put(self, bucket: str, key: str, body: bytes = b"content") -> None:
        name = quote(key, safe="")
        place = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}"
        self._post(place, body, "application/octet-stream")

    def _post(self, path: str, body: bytes, content_type: str) -> None:
        headers = {"Content-Type": content_type}
        request = urllib.request.Request(f"{self.endpoint}{path}", data=body, headers=headers, method="POST")
        with urllib.request.urlopen(request, timeout=60) as response:
            assert response.status == 200


@contextmanager
def running_fake_gcs(directory: Path) -> Iterator[FakeGcs]:
    """Run a server that keeps everything in memory."""
    program = installed("fake-gcs-server")
    with retried(lambda: _start(program, directory)) as server:
        yield server


@contextmanager
def _start(program: Path, directory: Path) -> Iterator[FakeGcs]:
    directory.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    with running(
        [
            *(program, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"),
            *("-public-host", address, "-external-url", f"http://{address}", "-log-level", "error"),
        ],
        log_file=directory / f"fake-gcs-{port}.log",
        ready=lambda: listens(port),
    ) as process:
        yield FakeGcs(endpoint=f"http://{address}", process=process)
