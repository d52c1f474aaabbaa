"""The process beside this one that renews credentials for engines which fetch them from an address.

It is a process and not a thread, because engines hold Python's lock in some calls while they wait for the
answer.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO, cast

from sluice_recipient.address import TableName
from sluice_recipient.errors import Unavailable
from sluice_recipient.private import write_private
from sluice_recipient.profile import Profile

_STARTING: Final = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where an engine fetches credentials, and the file with the token that it sends."""

    uri: str
    token_file: Path


class Companion:
    """One such process. It ends when this one does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._paths: dict[tuple[Profile, TableName], str] = {}
        self._owner = os.getpid()
        try:
            self._process = subprocess.Popen(
                # Without the working directory in the path: a json.py there would be taken for the real one.
                [sys.executable, "-P", "-m", "sluice_recipient.loopback"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**os.environ, "PYTHONPATH": _path()},
                # Ctrl-C is for this process to act on.
                start_new_session=True,
            )
        except OSError as exc:
            raise Unavailable(f"cannot start {sys.executable} to renew credentials: {exc.strerror}") from exc
        self._orders = cast("TextIO", self._process.stdin)
        self._answers = cast("TextIO", self._process.stdout)
        atexit.register(self.close)
        token = secrets.token_urlsafe(32)
        self._token_file = write_private(f"token-{secrets.token_hex(4)}", token)
        self._port = self._order({"token": token})["port"]

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        # A fork has the pipes of its parent, but must not speak on them at the same time.
        return self._owner == os.getpid() and self._process.poll() is None

    def address_of(self, profile: Profile, name: TableName) -> Address:
        """Return where credentials of a table are; the same table always has the same address."""
        with self._lock:
            if (profile, name) not in self._paths:
                path = f"/{secrets.token_urlsafe(16)}"
                self._order({"path": path, "profile": profile.to_json(), "table": str(name)})
                self._paths[profile, name] = path
            uri = f"http://127.0.0.1:{self._port}{self._paths[profile, name]}"
        return Address(uri=uri, token_file=self._token_file)

    def close(self) -> None:
        """End the process."""
        if self._owner == os.getpid():
            self._process.communicate()

    def _order(self, content: Mapping[str, Any]) -> Any:
        try:
            self._orders.write(json.dumps(content) + "\n")
            self._orders.flush()
            return json.loads(self._answers.readline())
        except (OSError, ValueError) as exc:
            raise Unavailable("the process that renews credentials has ended") from exc


def process_companion() -> Companion:
    """Return the companion of this process, started when it is first wanted."""
    with _STARTING:
        companion = _companion()
        if not companion.is_running:
            _companion.cache_clear()
            companion = _companion()
        return companion


@functools.cache
def _companion() -> Companion:
    return Companion()


def _path() -> str:
    """Return the import path under which the companion finds this very package."""
    inherited = os.environ.get("PYTHONPATH")
    return os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), inherited]))
