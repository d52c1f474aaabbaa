"""What a service has in hand, written down by the service itself, and read when it is stopped or gone."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Set
from pathlib import Path
from typing import Final

# Beside the configuration of the process.
FILE: Final = "journal"
CALL: Final = "call"
WATCH: Final = "watch"
_BEGUN, _ENDED = "+", "-"


class Journal:
    """One line for the begin of each call, and one for its end; a process writes a new one."""

    def __init__(self, file: Path) -> None:
        self._descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)

    def begin(self, kind: str, key: str) -> None:
        self._write(_BEGUN, kind, key)

    def end(self, kind: str, key: str) -> None:
        self._write(_ENDED, kind, key)

    def _write(self, *words: str) -> None:
        # At once and whole: what was written is there when the process is not.
        os.write(self._descriptor, f"{' '.join(words)}\n".encode())


class JournalReader:
    """Reads on where it was: a process that is stopped is not to be kept waiting."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read = 0
        self._under_way: Counter[tuple[str, str]] = Counter()

    def calls(self) -> Set[str]:
        """Return the ids of the requests of which it has a call in hand."""
        return self._keys(CALL)

    def watchers(self) -> Set[str]:
        """Return the addresses of those whom it tells of its health."""
        return self._keys(WATCH)

    def _keys(self, wanted: str) -> Set[str]:
        self._read_on()
        return {key for (kind, key), calls in self._under_way.items() if kind == wanted and calls > 0}

    def _read_on(self) -> None:
        with self._file.open("rb") as file:
            file.seek(self._read)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._read += len(whole + newline)
        for line in whole.decode().splitlines():
            mark, kind, key = line.split(" ")
            self._under_way[kind, key] += 1 if mark == _BEGUN else -1
