from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.dev import coverage_report
from deploy.dev.lanes import COVERAGE_SETTINGS

MODULE = """
def sign(number):
    if number < 0:
        return -1
    if number > 0:
        return 1
    return 0
"""


@pytest.fixture
def checkout(tmp_path):
    """A checkout with a package of two modules, one of which no lane executes."""
    package = tmp_path / "checkout" / "gateway" / "edge"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    for name in ("sign.py", "unused.py"):
        (package / name).write_text(MODULE)
    return package.parent.parent


def execute(checkout: Path, lane: str, code: str) -> None:
    """Run code as a test process of a lane does."""
    folder = checkout / "coverage" / lane
    folder.mkdir(parents=True, exist_ok=True)
    environment = {
        "COVERAGE_PROCESS_START": str(COVERAGE_SETTINGS),
        "COVERAGE_FILE": str(folder / "data"),
        "PYTHONPATH": str(checkout),
    }
    subprocess.run([sys.executable, "-c", code], cwd=checkout, env=environment, check=True)


@pytest.fixture
def report(checkout):
    execute(checkout, "fast", "from gateway.edge.sign import sign; sign(-1)")
    execute(checkout, "components", "from gateway.edge.sign import sign; sign(1)")
    execute(checkout, "components", "from gateway.edge.sign import sign; sign(0)")
    return coverage_report.measure(checkout / "coverage", checkout)


@pytest.mark.slow
def test_branches_are_counted_by_lane_and_package_and_over_all_processes(report):
    assert report == {
        "fast": {"gateway/edge": (1, 8)},
        "components": {"gateway/edge": (3, 8)},
        "all": {"gateway/edge": (4, 8)},
    }


@pytest.mark.slow
def test_table_has_a_row_for_each_package_and_a_column_for_each_lane(report):
    head, row = (line.split() for line in coverage_report.table(report).splitlines())
    assert head[-3:] == ["components", "fast", "all"]
    assert row == ["gateway/edge", "37.5", "12.5", "50.0"]


@pytest.mark.parametrize(
    ("file", "package"),
    [
        ("gateway/errors.py", "gateway"),
        ("gateway/edge/handlers/query.py", "gateway/edge"),
        ("gateway/services/snapshot/log/read.py", "gateway/services/snapshot"),
        ("vendors/aws/issuer.py", "vendors/aws"),
        ("vendors/http.py", "vendors"),
        ("recipient/src/sluice_recipient/client.py", "recipient"),
    ],
)
def test_package_of_a_file(file, package):
    assert coverage_report.package_of(Path(file)) == package


def test_compare_names_packages_that_lost_more_than_the_tolerance():
    before = {"fast": {"gateway/edge": (500, 1000), "gateway/rpc": (500, 1000), "vendors/aws": (1, 2)}}
    after = {"fast": {"gateway/edge": (494, 1000), "gateway/rpc": (495, 1000)}}
    assert list(coverage_report.compare(before, after)) == [
        "fast gateway/edge: 50.0 % before, 49.4 % now",
        "fast vendors/aws: 50.0 % before, 0.0 % now",
    ]


@pytest.mark.slow
def test_a_lower_coverage_than_before_fails(report, checkout, tmp_path, monkeypatch, capsys):
    before = tmp_path / "before.json"
    monkeypatch.setattr(
        sys,
        "argv",
        ["x", str(checkout / "coverage"), "--tree", str(checkout), "--against", str(before)],
    )
    before.write_text(json.dumps(report))
    assert coverage_report.main() == 0
    before.write_text(json.dumps({**report, "fast": {"gateway/edge": [2, 8]}}))
    assert coverage_report.main() == 1
    assert "fast gateway/edge: 25.0 % before, 12.5 % now" in capsys.readouterr().out
