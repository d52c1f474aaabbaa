"""Table-driven tests: one test for many inputs, which reports every case that fails."""

from __future__ import annotations

import functools
import inspect
import reprlib
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any

import pytest


def each_case(
    names: str | tuple[str, ...],
    cases: Iterable[Any],
    ids: Iterable[str] | Callable[[Any], object] | None = None,
) -> Callable[[Callable[..., Any]], Any]:
    """Run the body of a test for each case, and report every case that fails.

    The arguments are those of `pytest.mark.parametrize`. The cases share the test's fixtures and have no
    marks: use `parametrize` where a case needs its own.
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [_values(case, len(arguments)) for case in cases]
    labels = ids if ids is None or callable(ids) else list(ids)
    assert table, "a test needs a case"
    assert all(len(values) == len(arguments) for values in table), "a case needs a value for each name"
    assert not isinstance(labels, list) or len(labels) == len(table), "each case needs an id"

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        def calls(fixtures: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
            for number, values in enumerate(table):
                given = dict(zip(arguments, values, strict=True))
                yield _label(number, given, labels), fixtures | given

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failures = _Failures()
            for case, given in calls(fixtures):
                with failures.of(case):
                    test(**given)
            failures.report(len(table))

        @functools.wraps(test)
        async def run_async(**fixtures: Any) -> None:
            failures = _Failures()
            for case, given in calls(fixtures):
                with failures.of(case):
                    await test(**given)
            failures.report(len(table))

        wrapper: Any = run_async if inspect.iscoroutinefunction(test) else run
        signature = inspect.signature(test)
        fixtures = [each for each in signature.parameters.values() if each.name not in arguments]
        wrapper.__signature__ = signature.replace(parameters=fixtures)
        return wrapper  # type: ignore[no-any-return]  # has a signature of its own

    return decorate


def _values(case: Any, number: int) -> tuple[Any, ...]:
    if isinstance(case, type(pytest.param())):
        assert not case.marks, "a case has no marks: use parametrize"
        return tuple(case.values)
    return tuple(case) if number > 1 else (case,)


def _label(number: int, given: dict[str, Any], ids: list[str] | Callable[[Any], object] | None) -> str:
    if ids is None:
        return ", ".join(f"{name}={reprlib.repr(value)}" for name, value in given.items())
    return ", ".join(str(ids(value)) for value in given.values()) if callable(ids) else ids[number]


class _Failures:
    def __init__(self) -> None:
        self._errors: list[Exception] = []

    def of(self, case: str) -> _Case:
        return _Case(case, self._errors)

    def report(self, number: int) -> None:
        __tracebackhide__ = True
        if self._errors:
            raise ExceptionGroup(f"{len(self._errors)} of {number} cases failed", self._errors)


class _Case:
    """Collects the exception of a case, with a note that names the case."""

    def __init__(self, case: str, errors: list[Exception]) -> None:
        self._case = case
        self._errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, traceback: TracebackType | None) -> bool:
        if error is None:
            return False
        if isinstance(error, (pytest.fail.Exception, pytest.skip.Exception, SystemExit)):
            # Not exceptions that a group can hold. A case cannot be skipped: leave it out of the table.
            error = AssertionError(f"{type(error).__name__}: {error}").with_traceback(traceback)
        error.add_note(f"case: {self._case}")
        if not isinstance(error, Exception):
            return False
        self._errors.append(error)
        return True
