"""One test for a whole document: report every problem in it, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.repository import ROOT


def assert_none(problems: Iterable[str]) -> None:
    """Fail with every problem, one to a line."""
    __tracebackhide__ = True
    found = list(problems)
    if found:
        pytest.fail("\n".join([f"{len(found)} found:", *found]))


def at(file: Path, offset: int) -> str:
    """Return ``path:line`` of an offset in the text of a file of the project."""
    line = file.read_text().count("\n", 0, offset) + 1
    return f"{file.relative_to(ROOT)}:{line}"


def place(file: Path, pattern: str) -> str:
    """Return ``path:line`` of the first line that matches, or the path alone if none does."""
    found = re.search(pattern, file.read_text(), re.MULTILINE)
    return at(file, found.start()) if found else str(file.relative_to(ROOT))
