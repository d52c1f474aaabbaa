"""What travels beside a call: the request's id and its trace."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Final

from gateway.domain.request_id import fit_request_id

REQUEST_ID: Final = "x-request-id"
TRACEPARENT: Final = "traceparent"

Metadata = Sequence[tuple[str, str | bytes]]

# For log lines only: identity and deadlines never travel this way, as it ends at the process.
current_request_id: ContextVar[str] = ContextVar("current_request_id", default="")


def call_metadata(request_id: str, traceparent: str) -> tuple[tuple[str, str], ...]:
    """Return what the edge sends with each call that it makes for one request."""
    pairs = ((REQUEST_ID, request_id), (TRACEPARENT, traceparent))
    return tuple(pair for pair in pairs if pair[1])


def find_metadata(context: Any, name: str) -> str:
    """Return a value of the caller's metadata, or an empty string."""
    for key, value in context.invocation_metadata() or ():
        if key == name and isinstance(value, str):
            return value
    return ""


def request_id_of(context: Any) -> str:
    """Return the caller's id of the request, or an empty string; what is unfit for an audit event is none."""
    return fit_request_id(find_metadata(context, REQUEST_ID))
