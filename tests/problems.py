"""One test for a whole document: report every problem in it, each with its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import pytest

from tests.repository import ROOT

_T = TypeVar("_T")


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


def not_raised(error: type[Exception], words: str, function: Callable[[_T], object], argument: _T) -> str:
    """Return what a call does in place of raising an error with these words in its message.

    The empty string means that it raises that error.
    """
    try:
        outcome = f"returns {function(argument)!r}"
    except error as exc:
        if words in str(exc):
            return ""
        outcome = f"says {str(exc)!r}, without {words!r}"
    except Exception as exc:  # noqa: BLE001 -- a case that raises anything else must not hide the cases after it
        outcome = f"raises {exc!r}"
    return f"{argument!r} {outcome}"
