"""Engines that read logs, each in a process of its own that takes commands and says what they took."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.e2e.official_client import PYTHON, environment
from tests.repository import ROOT

OWN = (sys.executable, "-m", "bench.engine_own")
DELTALAKE = (str(PYTHON), "-m", "bench.engine_deltalake")


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a command took, and how many files there were."""

    cpu: float
    wall: float
    files: int
    # The most memory that the process ever had, in bytes.
    peak: int


class Engine:
    """A process that waits for commands."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, command: str, *arguments: object) -> Taken:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([command, *map(str, arguments)]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self._process.args!r} ended at {command}")
        return Taken(**json.loads(answer))


@contextmanager
def running_engine(command: Sequence[str]) -> Iterator[Engine]:
    """Start an engine, and end it with the block."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment()
    )
    try:
        yield Engine(process)
    finally:
        # Without commands to come it ends by itself.
        process.communicate()
