"""Runs one job from a file, as spark-submit does, or a person at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from gateway.domain.job import JobKind
from gateway.errors import InvalidArgument
from pipeline.access import Access
from pipeline.faults import fault_of, masked
from pipeline.progress import Progress, TerminalProgress, summary
from pipeline.protocol import BadRequest, Request, parse_request
from pipeline.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Run = Callable[["SparkSession", Mapping[str, Any], Progress], Mapping[str, Any]]

_FAILED, _MISUSED = 1, 2


def run_file(kind: JobKind, run: Run, arguments: Sequence[str] | None = None) -> int:
    """Run the job that a file tells of, and return the status to exit with."""
    given = sys.argv[1:] if arguments is None else arguments
    if len(given) != 1:
        sys.stderr.write(f"usage: {kind}.py PLAN.json\n")
        return _MISUSED
    return _run(kind, run, Path(given[0]), sys.stdout)


def _run(kind: JobKind, run: Run, file: Path, out: TextIO) -> int:
    access: Mapping[str, str] = {}
    try:
        request = _read(kind, file)
        access = request.access
        progress = TerminalProgress()
        progress("starting Spark", 0, 0)
        session = open_session(request.spark)
        result = run(Access(session, request.spark).session_with(access), request.plan, progress)
    except Exception as exc:  # noqa: BLE001 -- whatever Spark raises is told in one line
        fault = fault_of(exc)
        again = "; trying again may help" if fault.retry else ""
        sys.stderr.write(f"{kind}: {masked(fault.message, access)}{again}\n")
        return _FAILED
    out.write(summary(result))
    return 0


def _read(kind: JobKind, file: Path) -> Request:
    try:
        request = parse_request(file.read_bytes())
    except OSError as exc:
        raise InvalidArgument(f"{file} cannot be read: {exc.strerror}") from exc
    except BadRequest as exc:
        raise InvalidArgument(f"{file} is no plan: {exc.message}") from exc
    if request.job != kind:
        raise InvalidArgument(f"{file} is the plan of a job of another kind: {request.job}")
    return request
