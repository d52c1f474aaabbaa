"""How a job tells what it is doing: to another process, or to a person at a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TextIO

# What is being done, how much of it is done, and how much there is; 0 of 0 where nobody knows.
Progress = Callable[[str, int, int], None]

_BAR: Final = 20


def ignore(message: str, done: int, total: int) -> None:
    """Tell nobody."""


class TerminalProgress:
    """Writes a line for each step: what it is, and how long the job has taken until then."""

    def __init__(self, out: TextIO = sys.stderr, now: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._now = now
        self._began = now()

    def __call__(self, message: str, done: int, total: int) -> None:
        elapsed = self._now() - self._began
        self._out.write(f"{elapsed:7.1f} s  {_bar(done, total)}  {message}\n")
        self._out.flush()


def summary(result: Mapping[str, Any]) -> str:
    """Return a job's result as a table of two columns, what lies deeper named by dots."""
    rows = [(name, _text(value)) for name, value in _flat(result, "")]
    width = max((len(name) for name, _ in rows), default=0)
    return "".join(f"{name.ljust(width)}  {value}".rstrip() + "\n" for name, value in rows)


def _bar(done: int, total: int) -> str:
    if total <= 0:
        return " " * (_BAR + 2)
    filled = min(_BAR, _BAR * done // total)
    return f"[{'#' * filled}{'.' * (_BAR - filled)}]"


def _flat(values: Mapping[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if value is None or value in ({}, []):
        return "-"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
