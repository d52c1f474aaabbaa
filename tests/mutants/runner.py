"""Runs mutants against the tests that cover them, several at a time, and appends each result to a file."""

from __future__ import annotations

import json
import marshal
import os
import queue
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.mutants.operators import SourceFile
from tests.mutants.recording import Recording, module_of, pytest_command, pytest_environment
from tests.mutants.results import MutantStatus, Result
from tests.mutants.sample import Mutant
from tests.ports import FIRST_PORT, LAST_PORT

# Generous: on a busy machine a slow test must not look like an endless loop.
_TIMEOUT_SECONDS: Final = 180.0
_TIMEOUT_FACTOR: Final = 10.0
# What runs first and kills most mutants, so that few processes collect all files that were selected.
_FIRST_FILES: Final = 4
_FIRST_SECONDS: Final = 3.0
_NO_TESTS_COLLECTED: Final = 5


class MutantNotRun(Exception):
    """The run of a mutant proves nothing; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _TestRun:
    killed_by: str | None = None
    is_timeout: bool = False


class Runner:
    """Runs mutants of one tree, `processes` at a time."""

    def __init__(self, tree: Path, recording: Recording, processes: int) -> None:
        self._tree = tree
        self._recording = recording
        self._processes = processes
        self._slots: queue.SimpleQueue[int] = queue.SimpleQueue()
        for slot in range(processes):
            self._slots.put(slot)
        self._running: set[subprocess.Popen[bytes]] = set()

    def run(self, mutants: Sequence[Mutant]) -> Iterator[Result]:
        """Yield the result of each mutant as it ends."""
        executor = ThreadPoolExecutor(self._processes)
        try:
            for future in as_completed([executor.submit(self._run, mutant) for mutant in mutants]):
                yield future.result()
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
            for process in list(self._running):
                _kill(process)
            executor.shutdown()

    def _run(self, mutant: Mutant) -> Result:
        start = time.monotonic()
        source = SourceFile((self._tree / mutant.file).read_text(encoding="utf-8"))
        site = mutant.locate(source)
        assert site is not None, "stale mutants are not run"
        tests = self._recording.select(mutant.file, site)
        code = marshal.dumps(source.mutate(site, str(self._tree / mutant.file)))
        outcome, by = MutantStatus.NOT_COVERED, ""
        for stage in _stages(tests, self._recording):
            try:
                ran = self._run_tests(mutant, code, stage)
            except MutantNotRun as exc:
                outcome, by = MutantStatus.ERROR, str(exc)
                break
            outcome, by = MutantStatus.SURVIVED, ran.killed_by or ""
            if ran.is_timeout or ran.killed_by is not None:
                outcome = MutantStatus.TIMEOUT if ran.is_timeout else MutantStatus.KILLED
                break
        seconds = round(time.monotonic() - start, 1)
        return Result(
            id=mutant.id, outcome=outcome, by=by, tests=len(tests), seconds=seconds, line=site.first_line
        )

    def _run_tests(self, mutant: Mutant, code: bytes, tests: Sequence[str]) -> _TestRun:
        seconds = sum(map(self._recording.seconds.__getitem__, tests))
        with tempfile.TemporaryDirectory(prefix="mutant-") as name, self._slot() as slot:
            folder = Path(name)
            (folder / "code").write_bytes(code)
            job = {
                "module": module_of(mutant.file),
                "path": str(self._tree / mutant.file),
                "code": str(folder / "code"),
                "tests": tests,
                "outcome": str(folder / "outcome"),
            }
            (folder / "job").write_text(json.dumps(job), encoding="utf-8")
            status = self._run_pytest(folder, slot, tests, _TIMEOUT_SECONDS + _TIMEOUT_FACTOR * seconds)
            output = (folder / "output").read_text(encoding="utf-8", errors="replace")
            if not (folder / "outcome").exists():
                raise MutantNotRun(f"pytest did not start: {output[-500:]}")
            outcome = json.loads((folder / "outcome").read_text(encoding="utf-8"))
        return _judge(status, outcome, output)

    def _run_pytest(self, folder: Path, slot: int, tests: Sequence[str], timeout: float) -> int | None:
        """Return pytest's exit status; None if it timed out."""
        ports = (LAST_PORT - FIRST_PORT + 1) // self._processes
        first = FIRST_PORT + slot * ports
        environment = pytest_environment(
            MUTANT_JOB=str(folder / "job"),
            # Examples that one mutant fails on are not tried on the next.
            HYPOTHESIS_STORAGE_DIRECTORY=str(folder / "hypothesis"),
            TEST_PORTS=f"{first}-{first + ports - 1}",
        )
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        command = [*pytest_command("mutant_hook"), "-x", "--tb=line", *files]
        with (folder / "output").open("wb") as output:
            process = subprocess.Popen(
                command, cwd=self._tree, env=environment, stdout=output, stderr=output, start_new_session=True
            )
            self._running.add(process)
            try:
                return process.wait(timeout)
            except subprocess.TimeoutExpired:
                return None
            finally:
                # Also what a test has started: the mutant may be what would have ended it.
                _kill(process)
                self._running.discard(process)

    @contextmanager
    def _slot(self) -> Iterator[int]:
        slot = self._slots.get()
        try:
            yield slot
        finally:
            self._slots.put(slot)


def find_stale(tree: Path, mutants: Sequence[Mutant]) -> list[Mutant]:
    """Return the mutants whose function has changed since the sample was drawn."""
    sources: dict[str, SourceFile | None] = {}
    for file in {mutant.file for mutant in mutants}:
        path = tree / file
        sources[file] = SourceFile(path.read_text(encoding="utf-8")) if path.exists() else None
    return [
        mutant
        for mutant in mutants
        if (source := sources[mutant.file]) is None or mutant.locate(source) is None
    ]


def _stages(tests: Sequence[str], recording: Recording) -> list[Sequence[str]]:
    files: set[str] = set()
    seconds = 0.0
    for index, test in enumerate(tests):
        file = test.partition("::")[0]
        if file not in files and files and (seconds > _FIRST_SECONDS or len(files) == _FIRST_FILES):
            return [tests[:index], tests[index:]]
        files.add(file)
        seconds += recording.seconds[test]
    return [tests] if tests else []


def _judge(status: int | None, outcome: dict[str, Any], output: str) -> _TestRun:
    if not outcome["loaded"]:
        raise MutantNotRun(f"the mutated module was not imported: {output[-500:]}")
    if status is None:
        return _TestRun(is_timeout=True)
    if status == _NO_TESTS_COLLECTED:
        raise MutantNotRun("no selected test was collected; record the coverage again")
    return _TestRun(killed_by=(outcome["failed"] or f"pytest's exit status {status}") if status else None)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
