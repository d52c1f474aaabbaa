from __future__ import annotations

import json
import logging
from datetime import timedelta

import grpc
import pytest
from aiohttp import web
from grpc import aio

from gateway import errors
from gateway.edge.errors import HTTP, Fault, answer, container_answer, fault_of
from gateway.errors import GatewayError
from gateway.rpc.status import ERROR_CODE, STATUS
from tests.cases import each_case


def test_every_error_has_an_http_status() -> None:
    assert set(HTTP) == set(GatewayError.__subclasses__()) == set(STATUS)


@pytest.mark.parametrize("error", [errors.InvalidArgument, errors.NotFound, errors.Unsupported])
def test_permanent_errors_are_4xx_so_that_clients_do_not_retry(error: type[GatewayError]) -> None:
    assert 400 <= HTTP[error] < 429


def test_a_fault_has_the_code_and_message_of_its_error() -> None:
    fault = fault_of(errors.InvalidArgument("no such thing", error_code="MALFORMED_REQUEST"))
    assert fault == Fault(status=400, error_code="MALFORMED_REQUEST", message="no such thing")


def test_the_body_is_json_with_code_and_message() -> None:
    response = answer(fault_of(errors.NotFound("share 'x' \u2028 does not exist")))
    assert response.status == 404
    assert response.headers["Content-Type"] == "application/json; charset=utf-8"
    assert isinstance(response.body, bytes)
    assert response.body.isascii()
    assert json.loads(response.body) == {
        "errorCode": "RESOURCE_DOES_NOT_EXIST",
        "message": "share 'x' \u2028 does not exist",
    }


def test_the_body_for_aws_sdks_has_the_code_twice() -> None:
    fault = fault_of(errors.Throttled("slow down", retry_after=timedelta(seconds=3)))
    response = container_answer(fault)
    assert (response.status, response.headers["Retry-After"]) == (429, "3")
    assert isinstance(response.body, bytes)
    assert json.loads(response.body) == {
        "code": "RESOURCE_EXHAUSTED",
        "errorCode": "RESOURCE_EXHAUSTED",
        "message": "slow down",
    }


def test_401_names_the_scheme() -> None:
    assert fault_of(errors.Unauthenticated("who")).headers == {"WWW-Authenticate": "Bearer"}


@pytest.mark.parametrize(
    ("wait", "seconds"),
    [(timedelta(0), "1"), (timedelta(milliseconds=200), "1"), (timedelta(seconds=2.1), "3")],
)
def test_429_says_how_long_to_wait_in_whole_seconds(wait: timedelta, seconds: str) -> None:
    fault = fault_of(errors.Throttled("slow down", retry_after=wait))
    assert fault.status == 429
    assert fault.headers == {"Retry-After": seconds}


def test_a_status_of_a_service_is_the_error_that_it_raised() -> None:
    trailing = aio.Metadata((ERROR_CODE, "RESOURCE_DOES_NOT_EXIST"))
    exc = aio.AioRpcError(grpc.StatusCode.NOT_FOUND, aio.Metadata(), trailing, "table not found")
    assert fault_of(exc) == Fault(status=404, error_code="RESOURCE_DOES_NOT_EXIST", message="table not found")


def test_a_status_of_the_transport_is_503() -> None:
    exc = aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, aio.Metadata(), aio.Metadata(), "10.0.0.7: refused")
    fault = fault_of(exc)
    assert fault.status == 503
    assert "10.0.0.7" not in fault.message


def test_what_was_not_foreseen_is_logged_once_and_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        fault = fault_of(RuntimeError("/srv/secret/path"))
    assert fault == Fault(status=500, error_code="INTERNAL_ERROR", message="internal error")
    assert len(caplog.records) == 1


def test_405_keeps_the_allowed_methods() -> None:
    fault = fault_of(web.HTTPMethodNotAllowed("PUT", {"GET", "HEAD"}))
    assert fault.status == 405
    assert fault.headers == {"Allow": "GET,HEAD"}
    assert fault.message == "the method PUT is not allowed here, only GET, HEAD"


@each_case(
    ("exc", "status", "code"),
    [
        (web.HTTPNotFound(), 404, "RESOURCE_DOES_NOT_EXIST"),
        (web.HTTPRequestEntityTooLarge(max_size=1, actual_size=2), 413, "MALFORMED_REQUEST"),
        (web.HTTPUnsupportedMediaType(reason="must be json"), 415, "MALFORMED_REQUEST"),
        (web.HTTPRequestTimeout(), 408, "DEADLINE_EXCEEDED"),
        (web.HTTPExpectationFailed(), 417, "MALFORMED_REQUEST"),
    ],
)
def test_what_http_refuses_has_the_same_body(exc: web.HTTPException, status: int, code: str) -> None:
    fault = fault_of(exc)
    assert (fault.status, fault.error_code) == (status, code)
    assert fault.message
