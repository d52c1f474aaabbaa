"""Runs lanes of the test suite in stages, and reports where the time went.

    python deploy/dev/lanes.py LANE... [--without-root] [--pytest ARGUMENT...]

Stages run one after the other, except one that mostly waits: it runs beside the next, on ports of its own.
Programs that tests need are installed meanwhile. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PYTEST = ROOT / ".venv" / "bin" / "pytest"
PYTHON = ROOT / ".venv" / "bin" / "python"
SLOWEST = 20
NOTHING_SELECTED = 5
# Seconds; an installation that found everything takes less.
WORTH_SHOWING = 5


@dataclass(frozen=True)
class Lane:
    """How the tests of a lane run on two cores, and how many seconds they may take there."""

    name: str
    workers: int
    budget: int
    ports: str
    # The group of deploy/dev/components.py with the programs that the tests need.
    programs: str = ""
    # Another choice than the tests of the lane.
    selection: str = ""
    # Runs beside the stages after it.
    is_background: bool = False


LANES = {
    lane.name: lane
    for lane in (
        # Tests of components and of Spark wait for processes now and then: more workers keep two cores busy.
        Lane("fast", workers=2, budget=60, ports="10000-22767"),
        Lane("components", workers=4, budget=600, ports="10000-22767", programs="basic"),
        Lane("spark", workers=2, budget=420, ports="10000-22767"),
        # The chart's tests mostly wait for Kubernetes.
        Lane(
            "helm",
            workers=1,
            budget=420,
            ports="10000-14999",
            programs="kubernetes",
            is_background=True,
        ),
        Lane("fleet", workers=1, budget=420, ports="15000-22767"),
        # Property tests of the fast lane run again, with as many examples as HYPOTHESIS_PROFILE says.
        Lane(
            "deep",
            workers=2,
            budget=3600,
            ports="10000-22767",
            programs="basic",
            selection="deep or (fast and hypothesis)",
        ),
        Lane("release", workers=2, budget=3600, ports="10000-22767", programs="basic"),
    )
}
OUTCOMES = ("passed", "failed", "skipped")


class Stage:
    """A process, its output, and how long it took."""

    def __init__(
        self, name: str, budget: int, command: list[str], log: Path | None, env: dict[str, str]
    ) -> None:
        self.name = name
        self.budget = budget
        self._log = log
        self._began = time.monotonic()
        output = log.open("wb") if log else None
        self.process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **env}, stdout=output, stderr=output
        )
        # Its end is noticed when it comes, also while another stage is waited for.
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def wait(self) -> int:
        self._watcher.join()
        return self.process.returncode

    def show(self) -> None:
        if self._log is not None:
            say(f"\n== {self.name}")
            sys.stdout.buffer.write(self._log.read_bytes())
            sys.stdout.flush()

    def _watch(self) -> None:
        self.process.wait()
        self.seconds = time.monotonic() - self._began


class Run:
    def __init__(self, directory: Path, arguments: argparse.Namespace) -> None:
        self._directory = directory
        self._arguments = arguments
        self._began = time.monotonic()
        self._installations: dict[str, Stage] = {}
        self._background: list[Stage] = []
        self._stages: list[Stage] = []

    def execute(self) -> int:
        lanes = [lane for lane in LANES.values() if lane.name in self._arguments.lanes]
        if not self._arguments.without_root:
            self._install(lanes)
        for lane in lanes:
            if not self._is_installed(lane):
                break
            self._start(lane, is_background=lane.is_background and lane is not lanes[-1])
        self._wait_for_background()
        return self._report()

    def close(self) -> None:
        for stage in (*self._installations.values(), *self._stages):
            if stage.process.poll() is None:
                stage.process.terminate()

    def _install(self, lanes: list[Lane]) -> None:
        """Begin to install programs, and to write Spark's tables; Kubernetes takes what the tests leave."""
        installer = [sys.executable, str(ROOT / "deploy" / "dev" / "components.py")]
        commands = {lane.programs: [*installer, lane.programs] for lane in lanes if lane.programs}
        if "kubernetes" in commands:
            commands["kubernetes"] = ["nice", "-n", "19", *commands["kubernetes"]]
        if LANES["spark"] in lanes:
            # Nothing waits for it: the first test that needs a table does.
            commands["Spark's tables"] = [str(PYTHON), "-m", "tests.oracles.fixtures"]
        for name, command in commands.items():
            log = self._directory / f"{name}.log"
            self._installations[name] = Stage(f"installing {name}", 0, command, log, {})

    def _is_installed(self, lane: Lane) -> bool:
        installation = self._installations.get(lane.programs)
        if installation is None:
            return True
        failed = installation.wait()
        if failed or installation.seconds > WORTH_SHOWING:
            installation.show()
        return not failed

    def _start(self, lane: Lane, *, is_background: bool) -> None:
        selection = lane.selection or lane.name
        if self._arguments.without_root:
            selection = f"({selection}) and not system"
        workers = ["-n", str(lane.workers), "--dist", "worksteal"] if lane.workers > 1 else []
        command = [str(PYTEST), "-m", selection, "-q", *workers, *self._arguments.pytest]
        env = {"TEST_PORTS": lane.ports, "TEST_TIMES": str(self._directory / f"{lane.name}.json")}
        log = self._directory / f"{lane.name}.log" if is_background else None
        say(f"\n== {lane.name}{' (beside the next stages)' if is_background else ''}")
        stage = Stage(lane.name, lane.budget, command, log, env)
        self._stages.append(stage)
        if is_background:
            self._background.append(stage)
        else:
            stage.wait()

    def _wait_for_background(self) -> None:
        while self._background:
            stage = self._background.pop(0)
            stage.wait()
            stage.show()

    def _report(self) -> int:
        times = {stage.name: self._times(stage) for stage in self._stages}
        say(f"\n== the {SLOWEST} slowest tests")
        durations = {test: took for each in times.values() for test, took in each["durations"].items()}
        for test, took in sorted(durations.items(), key=lambda pair: -pair[1])[:SLOWEST]:
            say(f"{took:7.1f} s  {test}")
        say("\n== wall time by stage")
        for stage in (*self._installations.values(), *self._stages):
            stage.wait()
            budget = f"of {stage.budget} s" if stage.budget else ""
            is_late = stage.budget and stage.seconds > stage.budget
            warning = "  warning: more than its budget" if is_late else ""
            say(f"{stage.seconds:7.0f} s {budget:<10} {stage.name}{warning}")
        say(f"{time.monotonic() - self._began:7.0f} s            in all\n")
        total = {key: sum(each["outcomes"].get(key, 0) for each in times.values()) for key in OUTCOMES}
        say(", ".join(f"{count} {outcome}" for outcome, count in total.items()))
        return self._status(total["passed"])

    def _times(self, stage: Stage) -> dict[str, dict[str, float]]:
        file = self._directory / f"{stage.name}.json"
        return json.loads(file.read_text()) if file.exists() else {"durations": {}, "outcomes": {}}

    def _status(self, passed: float) -> int:
        # A selection of tests may leave a lane empty.
        allowed = {0, NOTHING_SELECTED} if self._arguments.pytest else {0}
        is_complete = len(self._stages) == len(set(self._arguments.lanes))
        return 0 if passed and is_complete and all(stage.wait() in allowed for stage in self._stages) else 1


def main() -> int:
    arguments = parse_arguments()
    # Every process would compile all of its modules again, and pytest would rewrite every test file.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as directory:
        run = Run(Path(directory), arguments)
        try:
            return run.execute()
        finally:
            run.close()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run lanes of the test suite.")
    parser.add_argument("lanes", nargs="+", choices=LANES, metavar="LANE")
    parser.add_argument("--without-root", action="store_true", help="leave out what needs apt, Go or npm")
    parser.add_argument("--pytest", nargs=argparse.REMAINDER, default=[], help="arguments for pytest")
    return parser.parse_args()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
