"""Runs selected tests with one module mutated in this process; the working tree stays as it is.

MUTANT_JOB names a JSON file: the module, its source file, the file of its mutated code, the ids of
the tests in the order in which their files run, and the file for the outcome.
"""

from __future__ import annotations

import json
import marshal
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

_JOB: dict[str, Any] = json.loads(Path(os.environ["MUTANT_JOB"]).read_text(encoding="utf-8"))
_outcome: dict[str, Any] = {"loaded": False, "ran": 0, "failed": None}


class _MutatedLoader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        _outcome["loaded"] = True
        # Now: pytest ends without its hooks if this import fails in a conftest.py.
        _save()
        code = marshal.loads(Path(_JOB["code"]).read_bytes())
        assert isinstance(code, CodeType)
        return code


class _MutantFinder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _JOB["module"]:
            return None
        loader = _MutatedLoader(fullname, _JOB["path"])
        return spec_from_file_location(fullname, _JOB["path"], loader=loader)


# As early as a plugin is imported: before any conftest.py can import the product.
sys.meta_path.insert(0, _MutantFinder())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    rank = {test: index for index, test in enumerate(_JOB["tests"])}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in rank])
    # Files in the order of the job, tests as the file has them: shared fixtures are set up once.
    files: dict[str, int] = {}
    for test in _JOB["tests"]:
        files.setdefault(test.partition("::")[0], len(files))
    items[:] = sorted(
        (item for item in items if item.nodeid in rank),
        key=lambda item: files[item.nodeid.partition("::")[0]],
    )


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _fail(report.nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _outcome["ran"] += report.when == "call"
    if report.failed:
        _fail(report.nodeid)


def _fail(test: str) -> None:
    _outcome["failed"] = _outcome["failed"] or test


def pytest_unconfigure() -> None:
    _save()


def _save() -> None:
    Path(_JOB["outcome"]).write_text(json.dumps(_outcome), encoding="utf-8")
