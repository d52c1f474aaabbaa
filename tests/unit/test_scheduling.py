from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.dev.lanes import DISTRIBUTION
from tests.repository import ROOT
from tests.scheduling import DURATIONS, assign_shards

# Starts pytest with two workers.
pytestmark = pytest.mark.slow

FILES = {
    "conftest.py": """
import os
from pathlib import Path

import pytest

from tests.timing import TimingReport

pytest_plugins = ["tests.scheduling"]


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(TimingReport(Path("times.json")))


@pytest.fixture(scope="package")
def of_the_package():
    note("package")


def note(fixture):
    with open("set-ups", "a") as file:
        file.write(f"{fixture}\\n")
""",
    "tests/__init__.py": "",
    "tests/inner/__init__.py": "",
    "tests/inner/test_store.py": """
import pytest

from conftest import note


@pytest.fixture(scope="module", params=["s3", "gcs"])
def store(request):
    note(request.param)


@pytest.mark.parametrize("case", range(4))
def test_store(store, case):
    assert case < 3


def test_other():
    pass
""",
    "tests/inner/test_first.py": "def test_first(of_the_package): pass",
    "tests/inner/test_second.py": "def test_second(of_the_package): pass",
    "tests/durations.json": '{"components": {"tests/inner": 5}}',
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("suite")
    for name, text in FILES.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for name in ("scheduling.py", "timing.py"):
        shutil.copy(ROOT / "tests" / name, directory / "tests")
    return directory


@pytest.fixture(scope="module")
def output(directory: Path) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v", "-n", "2", *DISTRIBUTION]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(command, cwd=directory, env=env, capture_output=True, text=True, check=False).stdout


def test_fixture_of_a_package_or_a_module_is_set_up_once_in_a_run(output, directory):
    assert "2 failed, 9 passed" in output
    assert sorted((directory / "set-ups").read_text().split()) == ["gcs", "package", "s3"]


def test_failed_test_is_reported_by_its_own_name(output):
    assert "FAILED tests/inner/test_store.py::test_store[s3-3] - " in output
    assert "FAILED tests/inner/test_store.py::test_store[gcs-3] - " in output


def test_durations_are_recorded_by_scope(output, directory):
    assert output
    assert json.loads((directory / "times.json").read_text())["scopes"].keys() == {
        "tests/inner",
        "tests/inner/test_store.py",
        "tests/inner/test_store.py store=0",
        "tests/inner/test_store.py store=1",
    }


def test_recorded_scopes_exist():
    lanes = json.loads(DURATIONS.read_text())
    recorded = {scope.partition(" ")[0] for scopes in lanes.values() for scope in scopes}
    assert [path for path in sorted(recorded) if not (ROOT / path).exists()] == []


def test_shards_take_about_the_same_time():
    seconds = {Path(name): float(took) for name, took in zip("abcdefg", [8, 5, 3, 3, 2, 2, 1], strict=True)}
    shards = assign_shards(seconds, 3)
    totals = [sum(seconds[file] for file in shards if shards[file] == shard) for shard in range(3)]
    assert shards.keys() == seconds.keys()
    assert totals == [8, 8, 8]


def test_shards_of_a_suite_collect_each_file_once(tmp_path):
    names = [f"test_{number}" for number in range(5)]
    for name in names:
        file = tmp_path / "tests" / "unit" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"def {name}(): pass\n")
    (tmp_path / "tests" / "__init__.py").touch()
    shutil.copy(ROOT / "tests" / "scheduling.py", tmp_path / "tests")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "tests.scheduling",
        "-q",
        "-rA",
        "tests",
    ]
    passed = []
    for shard in ("0/2", "1/2"):
        env = {**os.environ, "TEST_SHARD": shard}
        output = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True
        ).stdout
        found = [line.rpartition("::")[2] for line in output.splitlines() if line.startswith("PASSED")]
        assert len(found) in (2, 3)
        passed += found
    assert sorted(passed) == names
