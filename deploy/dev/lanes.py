"""Runs lanes of the test suite in stages, and reports where the time went.

    python deploy/dev/lanes.py LANE... [--without-system] [--budget SECONDS] [--record] [--coverage FOLDER]
        [--pytest ...]

Lanes run one after the other, except a background lane, which runs beside them on its own ports. The programs
of a lane are installed before it starts, beside the lanes that need none. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
PYTEST = ROOT / ".venv" / "bin" / "pytest"
PYTHON = ROOT / ".venv" / "bin" / "python"
COVERAGE_SETTINGS = ROOT / "deploy" / "dev" / "coverage.ini"
SLOWEST = 20
NOTHING_SELECTED = 5
# What pytest's exit status means.
STATUSES = {
    1: "tests failed",
    2: "the run was interrupted (as -x does), or a test file cannot be imported",
    3: "pytest failed",
    4: "the arguments of pytest are wrong",
    NOTHING_SELECTED: "no test was selected",
}
# Seconds; an installation that found everything takes less.
WORTH_SHOWING = 5
# Read by tests/scheduling.py.
DURATIONS = ROOT / "tests" / "durations.json"
# Seconds; shorter files of a sharded lane make no difference.
WORTH_RECORDING = 1


@dataclass(frozen=True)
class Lane:
    """A group of tests, how they run on two cores, and their time there: a slower run prints a warning."""

    name: str
    description: str
    workers: int
    # Seconds.
    budget: int
    # Each worker is a pytest of its own, with a shard of the test files; otherwise a worker of pytest-xdist.
    is_sharded: bool = False
    # A lane that runs beside others has ports of its own.
    ports: str = "15000-22767"
    # The group of deploy/dev/components.py with the programs that the tests need.
    programs: str = ""
    # The expression of pytest's -m; the name of the lane if empty.
    selection: str = ""
    # The folders that are collected.
    paths: tuple[str, ...] = ("tests",)
    # Runs beside the other lanes, from the time when its programs are installed.
    is_background: bool = False
    # pytest deselects its tests unless -m names the lane, and `.ci/run` leaves it out.
    is_on_request: bool = False


LANES = {
    lane.name: lane
    for lane in (
        # xdist's report of a test costs as much as a fast test, and each of its workers collects all files. A
        # shard collects its own.
        Lane(
            "fast",
            "needs nothing but Python",
            workers=3,
            budget=180,
            is_sharded=True,
            paths=("tests/unit", "tests/contract"),
        ),
        # Tests of components and of Spark wait for processes now and then: more workers keep two cores busy.
        Lane(
            "components", "starts real components, or takes seconds", workers=4, budget=600, programs="basic"
        ),
        Lane(
            "spark",
            "needs a JVM: Spark, or Delta Kernel",
            workers=3,
            budget=480,
            programs="basic",
            paths=("tests/contract", "tests/integration", "tests/e2e"),
        ),
        # The chart's tests mostly wait for Kubernetes.
        Lane(
            "helm",
            "the Helm chart on a Kubernetes API server",
            workers=1,
            budget=480,
            ports="11000-14999",
            programs="kubernetes",
            paths=("tests/integration/helm",),
            is_background=True,
        ),
        Lane(
            "fleet",
            "replicas of every service under load behind a proxy, while some fail",
            workers=1,
            budget=240,
            programs="basic",
            paths=("tests/integration/fleet",),
        ),
        # Property tests of the other lanes run again, with as many examples as HYPOTHESIS_PROFILE says.
        Lane(
            "deep",
            "random tests with more cases",
            workers=2,
            budget=3600,
            programs="basic",
            selection="deep or hypothesis",
            is_on_request=True,
        ),
        Lane(
            "release",
            "stores, engines and expirations that take minutes",
            workers=2,
            budget=3600,
            # Some need Helm.
            programs="all",
            is_on_request=True,
        ),
    )
}
# The scopes of tests/scheduling.py, in its order.
DISTRIBUTION = ("--dist", "loadscope", "--no-loadscope-reorder")
OUTCOMES = ("passed", "failed", "skipped")


class Stage:
    """One process or several, their output, and how long they took."""

    def __init__(self, name: str, budget: int, processes: list[Process]) -> None:
        self.name = name
        self.budget = budget
        self._processes = processes

    def wait(self) -> int:
        """Return the exit status: the first failure, or success if any process has run tests."""
        statuses = [process.wait() for process in self._processes]
        failures = [status for status in statuses if status not in (0, NOTHING_SELECTED)]
        return failures[0] if failures else min(statuses)

    def is_running(self) -> bool:
        return any(process.is_running() for process in self._processes)

    def terminate(self) -> None:
        for process in self._processes:
            if process.is_running():
                process.terminate()

    def show(self) -> None:
        for process in self._processes:
            process.show()

    @property
    def seconds(self) -> float:
        return max(process.seconds for process in self._processes)

    @property
    def cpu_seconds(self) -> float:
        return sum(process.cpu_seconds for process in self._processes)


class Process:
    """A process with its output, its wall time, and the CPU time of it and its children."""

    def __init__(self, name: str, command: list[str], log: Path | None, env: dict[str, str]) -> None:
        self._name = name
        self._log = log
        self._began = time.monotonic()
        with log.open("wb") if log else nullcontext() as output:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env={**os.environ, **env}, stdout=output, stderr=output
            )
        # A thread waits for the process, so that its time is right while another is waited for.
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def wait(self) -> int:
        self._watcher.join()
        return int(self._process.returncode)

    def is_running(self) -> bool:
        return self._watcher.is_alive()

    def terminate(self) -> None:
        # Not Popen.terminate, which may reap the process that the watcher waits for.
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGTERM)

    def show(self) -> None:
        """Show the output that went to a file, once."""
        if self._log is not None:
            say(f"\n== {self._name}")
            sys.stdout.buffer.write(self._log.read_bytes())
            sys.stdout.flush()
            self._log = None

    def _watch(self) -> None:
        # Not Popen.wait, which discards the CPU time of the process and of all that it has waited for.
        _, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds = time.monotonic() - self._began
        self.cpu_seconds = usage.ru_utime + usage.ru_stime


class Run:
    """The stages of one run: installations, and lanes."""

    def __init__(self, directory: Path, arguments: argparse.Namespace) -> None:
        self._directory = directory
        self._arguments = arguments
        self._began = time.monotonic()
        self._installations: dict[str, Stage] = {}
        self._stages: list[Stage] = []
        # Why the run fails, other than by tests that failed.
        self._errors: list[str] = []

    def execute(self) -> int:
        lanes = [lane for lane in LANES.values() if lane.name in self._arguments.lanes]
        if not self._arguments.without_system:
            self._install(lanes)
        background = [lane for lane in lanes if lane.is_background and len(lanes) > 1]
        threads = [
            threading.Thread(target=self._run_in_background, args=[lane], daemon=True) for lane in background
        ]
        for thread in threads:
            thread.start()
        for lane in lanes:
            if lane not in background and self._wait_for_programs(lane):
                stage = self._start_lane(lane)
                stage.wait()
                stage.show()
        for thread in threads:
            thread.join()
        for stage in self._stages:
            stage.show()
        return self._report()

    def close(self) -> None:
        """Terminate what an interruption has left running, and show its output."""
        for stage in (*self._installations.values(), *self._stages):
            if stage.is_running():
                stage.terminate()
                stage.show()

    def _install(self, lanes: list[Lane]) -> None:
        """Begin to install programs, and to write Spark's tables."""
        installer = [sys.executable, str(ROOT / "deploy" / "dev" / "components.py")]
        for group in dict.fromkeys(lane.programs for lane in lanes if lane.programs):
            self._start_installation(group, f"installing {group}", [*installer, group])
        # A selection of tests writes the tables that it uses.
        if LANES["spark"] in lanes and not self._arguments.pytest:
            threading.Thread(target=self._write_tables, daemon=True).start()

    def _write_tables(self) -> None:
        # Spark needs Java. No lane waits for the tables: the first test that needs one does.
        if self._installations[LANES["spark"].programs].wait() == 0:
            self._start_installation(
                "tables", "writing Spark's tables", [str(PYTHON), "-m", "tests.oracles.fixtures"]
            )

    def _start_installation(self, name: str, title: str, command: list[str]) -> None:
        log = self._directory / f"{name}-installation.log"
        self._installations[name] = Stage(title, 0, [Process(title, command, log, {})])

    def _wait_for_programs(self, lane: Lane) -> bool:
        """Wait until the programs of a lane are installed; return False, and report it, if that failed."""
        installation = self._installations.get(lane.programs)
        if installation is None:
            return True
        failed = installation.wait()
        if failed or installation.seconds > WORTH_SHOWING:
            installation.show()
        if failed:
            fix = f"make components COMPONENTS={lane.programs}"
            self._errors.append(
                f"{lane.name} did not run: {installation.name} failed (see above); try `{fix}`"
            )
        return not failed

    def _run_in_background(self, lane: Lane) -> None:
        if self._wait_for_programs(lane):
            self._start_lane(lane, log=self._directory / f"{lane.name}.log").wait()

    def _start_lane(self, lane: Lane, log: Path | None = None) -> Stage:
        arguments = self._arguments.pytest
        has_paths = any(re.match(r"(\./)?tests(/|$)", argument) for argument in arguments)
        selection = lane.selection or lane.name
        if self._arguments.without_system:
            selection = f"({selection}) and not system"
        command = [str(PYTEST), "-m", selection, "-q", *arguments, *(() if has_paths else lane.paths)]
        env = {"TEST_PORTS": lane.ports, **self._coverage(lane)}
        say(f"\n== {lane.name}{' (in the background)' if log else ''}")
        if lane.is_sharded and not has_paths:
            processes = self._start_shards(lane, command, env)
        else:
            if lane.workers > 1:
                command[1:1] = ["-n", str(lane.workers), *DISTRIBUTION]
            env["TEST_TIMES"] = str(self._directory / f"{lane.name}.json")
            processes = [Process(lane.name, command, log, env)]
        stage = Stage(lane.name, self._arguments.budget or lane.budget, processes)
        self._stages.append(stage)
        return stage

    def _start_shards(self, lane: Lane, command: list[str], env: dict[str, str]) -> list[Process]:
        """Start a pytest for each shard of a lane's files; the output of all but the first is shown later."""
        first, last = map(int, lane.ports.split("-"))
        size = (last - first + 1) // lane.workers
        return [
            Process(
                f"{lane.name}, shard {shard + 1} of {lane.workers}",
                # Concurrent runs would replace each other's list of failures.
                [*command, "-o", f"cache_dir=.pytest_cache/{lane.name}-{shard}"],
                self._directory / f"{lane.name}-{shard}.log" if shard else None,
                env
                | {
                    "TEST_SHARD": f"{shard}/{lane.workers}",
                    "TEST_PORTS": f"{first + shard * size}-{first + (shard + 1) * size - 1}",
                    "TEST_TIMES": str(self._directory / f"{lane.name}-{shard}.json"),
                },
            )
            for shard in range(lane.workers)
        ]

    def _coverage(self, lane: Lane) -> dict[str, str]:
        if self._arguments.coverage is None:
            return {}
        folder = self._arguments.coverage.resolve() / lane.name
        folder.mkdir(parents=True)
        # Read at the start of every Python process in the environment, the gateways among them.
        return {"COVERAGE_PROCESS_START": str(COVERAGE_SETTINGS), "COVERAGE_FILE": str(folder / "data")}

    def _report(self) -> int:
        times = {stage.name: self._times(stage) for stage in self._stages}
        say(f"\n== the {SLOWEST} slowest tests")
        durations = {test: took for each in times.values() for test, took in each["durations"].items()}
        for test, took in sorted(durations.items(), key=lambda pair: -pair[1])[:SLOWEST]:
            say(f"{took:7.1f} s  {test}")
        say("\n== wall time by stage")
        for stage in (*self._installations.values(), *self._stages):
            failure = "  failed" if stage.wait() not in (0, NOTHING_SELECTED) else ""
            budget = f"of {stage.budget} s" if stage.budget else ""
            is_late = stage.budget and stage.seconds > stage.budget
            warning = "  warning: more than its budget" if is_late else ""
            cpu = f"{stage.cpu_seconds:6.0f} s CPU"
            say(f"{stage.seconds:7.0f} s {budget:<10} {cpu}  {stage.name}{failure}{warning}")
        say(f"{time.monotonic() - self._began:7.0f} s            in all\n")
        total = {key: sum(each["outcomes"].get(key, 0) for each in times.values()) for key in OUTCOMES}
        say(", ".join(f"{count} {outcome}" for outcome, count in total.items()))
        self._errors += [error for stage in self._stages if (error := self._error_of(stage))]
        ran = {stage.name for stage in self._stages}
        if missing := [lane for lane in self._arguments.lanes if lane not in ran]:
            self._errors.append(f"lanes that did not run: {', '.join(missing)}")
        if not total["passed"] and not self._errors:
            self._errors.append("no test was selected")
        for test in (test for each in times.values() for test in each["failed"]):
            say(f"failed: {test}")
        for error in self._errors:
            say(f"error: {error}")
        if self._arguments.record:
            self._record(times)
        return 1 if self._errors else 0

    def _record(self, times: dict[str, dict[str, Any]]) -> None:
        arguments = self._arguments
        if arguments.pytest or arguments.without_system or arguments.coverage:
            say("durations are not recorded: that takes complete lanes")
            return
        failed = {stage.name for stage in self._stages if self._error_of(stage)}
        if failed:
            say(f"durations are not recorded of failed lanes: {', '.join(sorted(failed))}")
        record({lane: each["scopes"] for lane, each in times.items() if lane not in failed})

    def _times(self, stage: Stage) -> dict[str, Any]:
        """Return what the processes of a stage have reported."""
        times: dict[str, Any] = {"durations": {}, "scopes": {}, "outcomes": Counter(), "failed": []}
        for file in sorted(self._directory.glob(f"{stage.name}*.json")):
            report = json.loads(file.read_text())
            times["durations"] |= report["durations"]
            times["scopes"] |= report["scopes"]
            times["outcomes"] += Counter(report["outcomes"])
            times["failed"] += report["failed"]
        return times

    def _error_of(self, stage: Stage) -> str | None:
        status = stage.wait()
        # A selection of tests may leave a lane empty.
        if status == 0 or (status == NOTHING_SELECTED and self._arguments.pytest):
            return None
        ended = f"pytest ended with {status}" if status > 0 else f"signal {-status} ended pytest"
        return f"{stage.name}: {STATUSES.get(status, ended)}"


def main() -> int:
    arguments = parse_arguments()
    # Every process would compile all of its modules again, and pytest would rewrite every test file.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # As an interruption does, so that no stage is left running and its output is shown.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if arguments.coverage:
        # A lane that does not run has no coverage.
        for name in LANES:
            shutil.rmtree(arguments.coverage / name, ignore_errors=True)
    with tempfile.TemporaryDirectory() as directory:
        run = Run(Path(directory), arguments)
        try:
            return run.execute()
        finally:
            run.close()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run lanes of the test suite.")
    parser.add_argument("lanes", nargs="+", choices=LANES, metavar="LANE")
    parser.add_argument("--without-system", action="store_true", help="leave out what needs apt, Go or npm")
    parser.add_argument("--budget", type=int, help="seconds that each lane may take without a warning")
    parser.add_argument("--record", action="store_true", help="write tests/durations.json")
    parser.add_argument("--coverage", type=Path, help="record branch coverage in a folder for each lane")
    parser.add_argument("--pytest", nargs=argparse.REMAINDER, default=[], help="arguments for pytest")
    return parser.parse_args()


def record(scopes: dict[str, dict[str, float]]) -> None:
    """Write the durations of scopes, by lane, and keep those of lanes that did not run."""
    durations = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
    for lane, took in scopes.items():
        # A lane that is neither sharded nor distributed has no scopes.
        if took:
            least = WORTH_RECORDING if LANES[lane].is_sharded else 0
            durations[lane] = {scope: round(took[scope]) for scope in sorted(took) if took[scope] >= least}
    DURATIONS.write_text(json.dumps(durations, indent=1) + "\n")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
