"""Records which fast test executes which line, once per tree, and selects the tests of a mutant."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Final

import coverage
import pytest

from tests.mutants.operators import Site

PLUGINS: Final = Path(__file__).with_name("plugins")
FAST_LANE: Final = "fast"
# Limits the tests of code that runs at import: all tests of its importers would take too long.
_MOST_IMPORTERS_TESTS: Final = 1500


def pytest_command(plugin: str) -> list[str]:
    """Return the start of a command that runs fast tests in one process, reproducibly."""
    options = ["-q", "-n0", "-p", "no:cacheprovider", "-p", plugin, "--hypothesis-seed=0"]
    return [sys.executable, "-m", "pytest", *options, "-m", FAST_LANE]


def pytest_environment(**more: str) -> dict[str, str]:
    # Bytecode is cached: most of a mutant's time is spent on imports.
    return os.environ | {"PYTHONPATH": str(PLUGINS), "PYTHONDONTWRITEBYTECODE": ""} | more


def record(tree: Path, folder: Path) -> None:
    """Run the fast lane of a tree under coverage."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = pytest_environment(
        MUTANT_RECORD=str(folder), HYPOTHESIS_STORAGE_DIRECTORY=str(folder / "hypothesis")
    )
    # A test that fails is not recorded, so that it kills no mutant.
    command = [*pytest_command("mutant_recorder"), "tests"]
    done = subprocess.run(command, cwd=tree, env=environment, check=False)
    if done.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"pytest recorded nothing in {folder}; its output above says why")


class Recording:
    """The recorded fast lane of a tree."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self._tree = tree
        self._data = coverage.CoverageData(str(folder / "coverage"))
        self._data.read()
        tests = json.loads((folder / "tests.json").read_text(encoding="utf-8"))
        self.seconds: dict[str, float] = {test: facts["seconds"] for test, facts in tests.items()}
        self._by_context: defaultdict[str, list[str]] = defaultdict(list)
        for test, facts in tests.items():
            for context in (
                test,
                f"file:{_file_of(test)}",
                *(f"fixture:{name}" for name in facts["fixtures"]),
            ):
                self._by_context[context].append(test)

    def select(self, file: str, site: Site) -> list[str]:
        """Return the tests that cover a mutant, by file; files of a similar name or short duration first."""
        lines = self._data.contexts_by_lineno(str(self._tree / file))
        here = {
            context for line in range(site.first_line, site.last_line + 1) for context in lines.get(line, ())
        }
        selected = self._tests_of(here)
        # Code that runs once is recorded for the first test only, and all others see its result.
        if site.runs_once or any(not context or context.startswith("file:") for context in here):
            users = self._tests_that_run(file) | self._tests_of_importers(file)
            selected |= set(self._order(users, near_to=Path(file).stem)[:_MOST_IMPORTERS_TESTS])
        return self._order(selected, near_to=Path(file).stem)

    def _tests_of(self, contexts: Iterable[str]) -> set[str]:
        return {test for context in contexts for test in self._by_context.get(context, ())}

    def _tests_that_run(self, file: str) -> set[str]:
        """Return the tests that execute any line of a file, without those that only import it."""
        lines = self._data.contexts_by_lineno(str(self._tree / file))
        contexts = {context for contexts in lines.values() for context in contexts}
        return self._tests_of(context for context in contexts if not context.startswith("file:"))

    def _tests_of_importers(self, file: str) -> set[str]:
        tests: set[str] = set()
        for importer in self._importers[module_of(file)]:
            is_test = importer.startswith("tests/")
            tests |= self._tests_of([f"file:{importer}"]) if is_test else self._tests_that_run(importer)
        return tests

    def _order(self, tests: set[str], near_to: str) -> list[str]:
        seconds: defaultdict[str, float] = defaultdict(float)
        for test in tests:
            seconds[_file_of(test)] += self.seconds[test]

        def rank(test: str) -> tuple[bool, float, str, str]:
            file = _file_of(test)
            return near_to not in Path(file).stem, seconds[file], file, test

        return sorted(tests, key=rank)

    @cached_property
    def _importers(self) -> defaultdict[str, set[str]]:
        """The files that import a module directly, by its name."""
        importers: defaultdict[str, set[str]] = defaultdict(set)
        for root in ("gateway", "vendors", "recipient/src", "tests"):
            for path in (self._tree / root).rglob("*.py"):
                file = path.relative_to(self._tree).as_posix()
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                    if isinstance(node, ast.ImportFrom) and node.module:
                        names = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
                    elif isinstance(node, ast.Import):
                        names = {alias.name for alias in node.names}
                    else:
                        continue
                    for name in names:
                        importers[name].add(file)
        return importers


def module_of(file: str) -> str:
    """Return the dotted name under which a source file is imported."""
    return file.removeprefix("recipient/src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _file_of(test: str) -> str:
    return test.partition("::")[0]
