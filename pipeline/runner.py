"""Runs jobs for another process: requests come in on standard input, replies go out on standard output."""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pipeline.access import Access
from pipeline.faults import chain, fault_of, is_spark_gone, masked
from pipeline.progress import Progress
from pipeline.protocol import BadRequest, Replies, Request, parse_request
from pipeline.session import SparkSettings, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Work = Callable[[Request, Progress], Mapping[str, Any]]

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_PR_SET_PDEATHSIG: Final = 1
# Whoever started us starts another one.
SPARK_IS_GONE: Final = 3


class SparkGone(Exception):
    """The JVM has ended: nothing more can be run here."""


class SparkWork:
    """Runs jobs on one session, which is opened when it is first needed and kept."""

    def __init__(self) -> None:
        self._settings: SparkSettings | None = None
        self._session: SparkSession | None = None
        self._access: Access | None = None

    def __call__(self, request: Request, progress: Progress) -> Mapping[str, Any]:
        job = importlib.import_module(f"pipeline.jobs.{request.job}")
        if self._access is None or self._settings != request.spark:
            progress("starting Spark", 0, 0)
            self._access = self._opened(request.spark)
        result: Mapping[str, Any] = job.run(self._access.session_with(request.access), request.plan, progress)
        return result

    def _opened(self, settings: SparkSettings) -> Access:
        if self._session is not None:
            self._session.stop()
            self._session = self._access = None
        self._session = open_session(settings)
        self._settings = settings
        return Access(self._session, settings)


def serve(lines: Iterable[bytes], replies: Replies, work: Work) -> None:
    """Answer one request after the other, until there are no more."""
    for line in lines:
        try:
            request = parse_request(line)
        except BadRequest as exc:
            replies.error(exc.request_id, exc.message, retry=False)
            continue
        _answer(request, replies, work)


def _answer(request: Request, replies: Replies, work: Work) -> None:
    try:
        result = work(request, partial(replies.progress, request.id))
    except Exception as exc:
        fault = fault_of(exc)
        sys.stderr.write(_trace(exc, masked(fault.message, request.access)))
        sys.stderr.flush()
        replies.error(request.id, masked(fault.message, request.access), retry=fault.retry)
        if is_spark_gone(exc):
            raise SparkGone from exc
    else:
        replies.result(request.id, result)


def _trace(error: Exception, message: str) -> str:
    """Return where an error came from, in none of its own words: Spark's quote rows and properties."""
    causes = [
        "".join((*traceback.format_tb(each.__traceback__), type(each).__name__)) for each in chain(error)
    ]
    return "\nby\n".join(reversed(causes)) + f": {message}\n"


def main() -> int:
    _die_with_parent()
    out = _take_stdout()
    with os.fdopen(os.dup(_STDIN), "rb") as lines, os.fdopen(out, "wb") as replies:
        # What we start, Spark first of all, reads none of our requests.
        _silence_stdin()
        try:
            serve(lines, Replies(replies), SparkWork())
        except SparkGone:
            return SPARK_IS_GONE
        except BrokenPipeError:
            return 0
    return 0


def _die_with_parent() -> None:
    """Ask the kernel to end us with whoever started us. Elsewhere, the end of the requests has to do."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _take_stdout() -> int:
    """Return standard output, and send to standard error whatever else is written to it from here on."""
    out = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)
    return out


def _silence_stdin() -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, _STDIN)
    os.close(nothing)


if __name__ == "__main__":
    sys.exit(main())
