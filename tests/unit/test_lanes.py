from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from deploy.dev import lanes as runner
from tests.components import BOTO3, SEAWEEDFS, SPARK_WRITER
from tests.lanes import ON_REQUEST, lane_of
from tests.repository import ROOT


def item(path: str, *marks: pytest.MarkDecorator) -> Any:
    def iter_markers(name: str | None = None) -> Any:
        return (each.mark for each in marks if name in (None, each.mark.name))

    return SimpleNamespace(path=ROOT / "tests" / path, iter_markers=iter_markers)


@pytest.mark.parametrize(
    ("lane", "path", "marks"),
    [
        ("fast", "unit/edge/test_app.py", ()),
        ("fast", "contract/http/test_aws_credentials.py", (pytest.mark.component(BOTO3),)),
        ("components", "unit/edge/test_app.py", (pytest.mark.slow,)),
        (
            "components",
            "contract/test_vendor.py",
            (pytest.mark.integration,),
        ),
        ("components", "contract/test_vendor.py", (pytest.mark.system,)),
        ("components", "integration/test_reload.py", ()),
        ("components", "e2e/test_make_run.py", ()),
        (
            "spark",
            "e2e/test_delta.py",
            (pytest.mark.component(SEAWEEDFS), pytest.mark.component(SPARK_WRITER)),
        ),
        ("fleet", "integration/fleet/test_kill.py", ()),
        ("helm", "integration/helm/test_spark.py", (pytest.mark.component(SPARK_WRITER),)),
        ("deep", "integration/helm/test_x.py", (pytest.mark.deep,)),
        ("release", "e2e/test_delta.py", (pytest.mark.release, pytest.mark.component(SPARK_WRITER))),
    ],
)
def test_lane_of_a_test(lane, path, marks):
    assert lane_of(item(path, *marks)) == lane


def test_every_lane_has_a_target_and_a_row_in_the_docs():
    targets = set(re.findall(r"^test-([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    rows = re.findall(r"^\| ([a-z]+) \| `make test-", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert set(runner.LANES) <= targets
    assert set(rows) == set(runner.LANES)


def test_all_lanes_together_are_test_all_and_test_release():
    makefile = (ROOT / "Makefile").read_text()

    def lanes_of(target: str) -> set[str]:
        found = re.search(rf"^{target}:.*\n\t@.*\$\(lanes\) ([a-z ]+)", makefile, re.MULTILINE)
        assert found is not None
        return set(found.group(1).split())

    assert lanes_of("test-all") | lanes_of("test-release") == set(runner.LANES)
    assert lanes_of("test-release") == ON_REQUEST
    assert lanes_of("test") <= lanes_of("test-all")


def test_paths_of_a_lane_hold_all_of_its_tests():
    for path in ("integration/test_reload.py", "e2e/test_make_run.py"):
        assert lane_of(item(path)) != "fast"
    spark = re.compile(r"component\([^)]*(PYSPARK|SPARK_WRITER|SPARK_PIPELINE|DELTA_KERNEL)")
    units = [file for file in (ROOT / "tests" / "unit").rglob("test_*.py") if file.name != "test_lanes.py"]
    assert not [file for file in units if spark.search(file.read_text())]
    assert all((ROOT / path).is_dir() for lane in runner.LANES.values() for path in lane.paths)
    # A test anywhere else would be in the fast lane, which does not collect it.
    folders = {file.relative_to(ROOT / "tests").parts[0] for file in (ROOT / "tests").rglob("test_*.py")}
    assert folders == {"unit", "contract", "integration", "e2e"}


def test_lane_beside_the_others_has_ports_of_its_own():
    for lane, other in itertools.permutations(runner.LANES.values(), 2):
        if lane.is_background:
            assert _ports(lane).isdisjoint(_ports(other))


def _ports(lane: runner.Lane) -> set[int]:
    first, last = map(int, lane.ports.split("-"))
    return set(range(first, last + 1))


@pytest.fixture
def pytest_script(tmp_path, monkeypatch):
    """Return a function that replaces pytest by a script with an exit status and a report of outcomes.

    A status below zero is a signal that ends the script.
    """

    def replace(status: int | str, **outcomes: int) -> None:
        end = f"kill {status} $$" if str(status).startswith("-") else f"exit {status}"
        report = json.dumps(
            {"durations": {}, "scopes": {}, "outcomes": outcomes, "failed": ["tests/x.py::y"]}
        )
        script = tmp_path / "pytest"
        script.write_text(f"#!/bin/sh\necho '{report}' > $TEST_TIMES\n{end}\n")
        script.chmod(0o755)
        monkeypatch.setattr(runner, "PYTEST", script)

    return replace


def run_lanes(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["lanes.py", *arguments])
    return runner.main()


def test_run_succeeds_if_every_lane_does(pytest_script, monkeypatch, capsys):
    pytest_script(0, passed=1)

    assert run_lanes(monkeypatch, "fast", "helm", "--without-system") == 0
    passed = runner.LANES["fast"].workers + 1
    assert f"{passed} passed, 0 failed, 0 skipped" in capsys.readouterr().out


def test_stage_is_reported_against_the_budget_that_was_given(pytest_script, monkeypatch, capsys):
    pytest_script(0, passed=1)

    run_lanes(monkeypatch, "fast", "--without-system", "--budget", "7")
    assert re.search(r"s of 7 s +\d+ s CPU  fast", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("status", "outcomes", "error"),
    [
        (1, {"failed": 1}, "error: fast: tests failed"),
        (2, {}, "error: fast: the run was interrupted (as -x does), or a test file cannot be imported"),
        (5, {}, "error: fast: no test was selected"),
        (137, {"passed": 1}, "error: fast: pytest ended with 137"),
        ("-9", {"passed": 1}, "error: fast: signal 9 ended pytest"),
    ],
)
def test_run_with_a_failure_names_it(pytest_script, monkeypatch, capsys, status, outcomes, error):
    pytest_script(status, **outcomes)

    assert run_lanes(monkeypatch, "fast", "--without-system", "--record") == 1
    output = capsys.readouterr().out
    assert error in output
    assert "failed: tests/x.py::y" in output
    assert "durations are not recorded" in output


def test_run_fails_if_a_signal_ends_one_shard(pytest_script, tmp_path, monkeypatch, capsys):
    pytest_script(0, passed=1)
    script = tmp_path / "pytest"
    script.write_text(
        script.read_text().replace("exit 0", "case $TEST_SHARD in 1/*) kill -11 $$; esac; exit 5")
    )

    assert run_lanes(monkeypatch, "fast", "--without-system") == 1
    assert "error: fast: signal 11 ended pytest" in capsys.readouterr().out


def test_run_with_a_lane_that_could_not_start_fails(pytest_script, monkeypatch, capsys):
    pytest_script(0, passed=1)
    popen = subprocess.Popen

    def start_all_but_helm(command: list[str], **options: Any) -> Any:
        if "tests/integration/helm" in command:
            raise OSError("no space left")
        return popen(command, **options)

    monkeypatch.setattr(subprocess, "Popen", start_all_but_helm)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    assert run_lanes(monkeypatch, "fast", "helm", "--without-system") == 1
    assert "error: lanes that did not run: helm" in capsys.readouterr().out
