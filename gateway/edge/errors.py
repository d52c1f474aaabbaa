"""Errors as HTTP answers: one table, one body."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from aiohttp import hdrs, web
from grpc.aio import AioRpcError

from gateway import errors
from gateway.edge.json import encode_json
from gateway.errors import MALFORMED_REQUEST, GatewayError
from gateway.rpc.status import to_error

HTTP: Final[dict[type[GatewayError], int]] = {
    errors.InvalidArgument: 400,
    errors.Unauthenticated: 401,
    errors.PermissionDenied: 403,
    errors.NotFound: 404,
    errors.Unsupported: 400,
    errors.Throttled: 429,
    errors.Unavailable: 503,
    errors.DeadlineExceeded: 504,
    errors.Internal: 500,
}
# Codes of what HTTP itself refuses; whatever else is the client's fault is malformed.
_CODES: Final = {
    404: errors.NotFound.default_code,
    405: errors.Unsupported.default_code,
    408: errors.DeadlineExceeded.default_code,
}
# Of a framework's own answer only what still holds for ours.
_KEPT_HEADERS: Final = (hdrs.ALLOW, hdrs.CONTENT_RANGE)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What went wrong, as it is answered."""

    status: int
    error_code: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)
    # What stands in the body besides.
    members: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedQuery:
    """The query that an error is about, for clients that look for its state in the body."""

    query_id: str


class StreamAborted(ConnectionError):
    """An answer that had begun was cut off, since its rest cannot be had."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def fault_of(exc: Exception) -> Fault:
    """Return the answer to an exception; what was not foreseen is logged, here and once."""
    if isinstance(exc, AioRpcError):
        exc = to_error(exc)
    if isinstance(exc, GatewayError):
        return Fault(
            status=HTTP[type(exc)],
            error_code=exc.error_code,
            message=exc.message,
            headers=_headers(exc),
            members=_members(exc),
        )
    if isinstance(exc, web.HTTPException):
        return _http_fault(exc)
    log.error("unhandled error in the edge", exc_info=exc)
    return Fault(status=500, error_code=errors.Internal.default_code, message="internal error")


def answer(fault: Fault) -> web.Response:
    return _answer(fault, {"errorCode": fault.error_code, "message": fault.message})


def container_answer(fault: Fault) -> web.Response:
    """Answer as ``answer`` does, with the name of the code that makes AWS SDKs show the message."""
    return _answer(fault, {"code": fault.error_code, "errorCode": fault.error_code, "message": fault.message})


def _answer(fault: Fault, body: Mapping[str, object]) -> web.Response:
    headers = {
        hdrs.CONTENT_TYPE: "application/json; charset=utf-8",
        hdrs.CACHE_CONTROL: "no-store",
        **fault.headers,
    }
    return web.Response(status=fault.status, body=encode_json({**body, **fault.members}), headers=headers)


def _headers(error: GatewayError) -> Mapping[str, str]:
    if isinstance(error, errors.Unauthenticated):
        return {hdrs.WWW_AUTHENTICATE: "Bearer"}
    if isinstance(error, errors.Throttled | errors.Unavailable) and error.retry_after is not None:
        return {hdrs.RETRY_AFTER: str(max(math.ceil(error.retry_after.total_seconds()), 1))}
    return {}


def _members(error: GatewayError) -> Mapping[str, object]:
    if not isinstance(error.fault, FailedQuery):
        return {}
    status = {"queryId": error.fault.query_id, "status": "failed", "message": error.message}
    return {"queryStatus": status}


def _http_fault(exc: web.HTTPException) -> Fault:
    return Fault(
        status=exc.status,
        error_code=_CODES.get(exc.status, MALFORMED_REQUEST),
        message=_http_message(exc),
        headers={name: exc.headers[name] for name in _KEPT_HEADERS if name in exc.headers},
    )


def _http_message(exc: web.HTTPException) -> str:
    if isinstance(exc, web.HTTPNotFound):
        return "there is nothing at this path; /docs below the endpoint describes what there is"
    if isinstance(exc, web.HTTPMethodNotAllowed):
        return f"the method {exc.method} is not allowed here, only {', '.join(sorted(exc.allowed_methods))}"
    if isinstance(exc, web.HTTPRequestEntityTooLarge):
        return "the request body is too large"
    if exc.reason != HTTPStatus(exc.status).phrase:
        return exc.reason
    return HTTPStatus(exc.status).phrase.lower()
