from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.image.slim import AWS_SERVICES, slim_interpreter, slim_packages


@pytest.fixture
def prefix(tmp_path):
    """A small environment with something of everything."""
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    for name in (
        *("own/__init__.py", "own/tests/test_own.py", "own-1.dist-info/METADATA"),
        *("pip/__init__.py", "pip-23.dist-info/METADATA", "setuptools/__init__.py"),
        *("setuptools-84.dist-info/METADATA", "_distutils_hack/__init__.py", "distutils-precedence.pth"),
        *("botocore/data/endpoints.json", "botocore/data/sts/service.json", "botocore/data/ec2/service.json"),
        *("numpy/tests/data", "numpy.libs/libx.so", "numpy/core.so"),
    ):
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text("")
    (tmp_path / "bin").mkdir()
    for name in ("python", "python3", "sluice", "activate", "jp.py", "spark-submit"):
        (tmp_path / "bin" / name).write_text("")
    return tmp_path


def test_what_nobody_runs_is_taken_out_and_the_rest_compiled(prefix):
    slim_packages(prefix)
    (packages,) = prefix.glob("lib/*/*")
    left = {str(path.relative_to(packages)) for path in packages.rglob("*") if path.is_file()}
    tag = sys.implementation.cache_tag
    assert left == {
        *("own/__init__.py", f"own/__pycache__/__init__.{tag}.pyc", "own-1.dist-info/METADATA"),
        *("botocore/data/endpoints.json", "botocore/data/sts/service.json"),
        # What it needs of its tests, and libraries that strip would break: these are none at all.
        *("numpy/tests/data", "numpy.libs/libx.so", "numpy/core.so"),
    }
    assert {path.name for path in (prefix / "bin").iterdir()} == {
        "python",
        "python3",
        "sluice",
        "spark-submit",
    }


def test_what_is_compiled_is_taken_whatever_time_its_source_has(prefix):
    (packages,) = prefix.glob("lib/*/*")
    source = packages / "own" / "__init__.py"
    source.write_text("WORD = 'old'\n")
    slim_packages(prefix)
    source.write_text("WORD = 'new'\n")
    os.utime(source, (1, 1))
    command = [sys.executable, "-c", "import own; print(own.WORD)"]
    env = {"PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}
    assert subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout == "old\n"


def test_an_interpreter_loses_what_installs_and_what_opens_windows(tmp_path):
    library, scripts = tmp_path / "lib", tmp_path / "bin"
    for name in (
        "json/__init__.py",
        "ensurepip/__init__.py",
        "tkinter/__init__.py",
        "site-packages/pip/__init__.py",
    ):
        (library / name).parent.mkdir(parents=True)
        (library / name).write_text("")
    scripts.mkdir()
    for name in ("python3", "pip3.11", "idle3"):
        (scripts / name).write_text("")
    slim_interpreter(library, scripts)
    assert {path.name for path in library.iterdir()} == {"json", "site-packages"}
    assert {path.name for path in scripts.iterdir()} == {"python3"}


def test_every_service_of_aws_that_is_kept_is_one():
    spec = importlib.util.find_spec("botocore")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    data = Path(spec.submodule_search_locations[0], "data")
    assert {place.name for place in data.iterdir()} >= AWS_SERVICES
