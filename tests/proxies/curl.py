"""curl, for HTTP/2, which no client in Python here speaks."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.proxies.front import Front

_PATIENCE = 60
# A stream of HTTP/2 that was reset; a part that was missing; a connection that was.
BROKEN = frozenset({92, 18, 56})


class Http2Answer:
    """An answer under way, read line by line as it comes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.lines: list[bytes] = []

    def read_lines(self, count: int) -> None:
        """Read until there are so many lines in all."""
        assert self._process.stdout is not None
        while len(self.lines) < count:
            line = self._process.stdout.readline()
            assert line.endswith(b"\n"), "the answer ended before"
            self.lines.append(line)

    def read_to_end(self) -> int:
        """Read what there is, and return what curl says of it: 0, or one of ``BROKEN``."""
        rest, _ = self._process.communicate(timeout=_PATIENCE)
        self.lines += rest.splitlines(keepends=True)
        return self._process.returncode


@contextmanager
def http2_post(front: Front, path: str, headers: Mapping[str, str]) -> Iterator[Http2Answer]:
    """Ask for an answer to an empty JSON object."""
    command = ["curl", "--http2", "--no-buffer", "--silent", "--show-error", "--data", "{}"]
    command += ["--max-time", str(_PATIENCE), "--cacert", str(front.authority.ca)]
    for name, value in headers.items():
        command += ["--header", f"{name}: {value}"]
    with subprocess.Popen([*command, front.url + path], stdout=subprocess.PIPE) as process:
        try:
            yield Http2Answer(process)
        finally:
            process.kill()
