"""What the gateway's side and the runner say to each other: lines of JSON, a request and its replies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from gateway.domain.job import JobKind
from gateway.errors import GatewayError
from pipeline.plan import read_plan
from pipeline.session import SparkSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A job to run now; jobs that are run by hand or by spark-submit are given a file of this."""

    id: str = ""
    job: JobKind
    plan: Mapping[str, Any]
    spark: SparkSettings = field(default_factory=SparkSettings)
    # Hadoop settings for this run alone, secrets among them.
    access: Mapping[str, str] = field(default_factory=dict, repr=False)


class BadRequest(Exception):
    """A line that is no request; it carries the id, as far as there is one to answer to."""

    def __init__(self, message: str, request_id: str | None) -> None:
        super().__init__(message)
        self.message = message
        self.request_id = request_id


def parse_request(line: bytes | str) -> Request:
    """Read a line; raise ``BadRequest`` when it says nothing that can be run."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as exc:
        # What was said is not repeated: there may be secrets in it.
        raise BadRequest("the request is not JSON", None) from exc
    request_id = values.get("id") if isinstance(values, dict) else None
    try:
        return read_plan(Request, values, name="request")
    except GatewayError as exc:
        raise BadRequest(exc.message, request_id if isinstance(request_id, str) else None) from exc


class Replies:
    """Writes the replies to one request at a time."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def progress(self, request_id: str, message: str, done: int, total: int) -> None:
        self._write(id=request_id, event="progress", message=message, done=done, total=total)

    def result(self, request_id: str, result: Mapping[str, Any]) -> None:
        self._write(id=request_id, event="result", result=result)

    def error(self, request_id: str | None, message: str, *, retry: bool) -> None:
        self._write(id=request_id, event="error", message=message, retry=retry)

    def _write(self, **reply: object) -> None:
        self._out.write(json.dumps(reply).encode() + b"\n")
        self._out.flush()
