from __future__ import annotations

import pytest
from obstore.exceptions import GenericError, PermissionDeniedError, UnauthenticatedError

from tests.cases import each_case
from vendors.obstore_error import Failure, StoreError, StoreRefused, judge, read_error

TOKEN = "FwoGZXIvYXdzEXAMPLETOKEN"


def told(status: str, code: str, more: str = "") -> str:
    """Return what obstore says of an answer."""
    return (
        f"Generic S3 error: Error performing GET http://host/lake/k in 1ms - Server returned non-2xx status "
        f"code: {status}: <?xml version='1.0'?><Error><Code>{code}</Code>{more}</Error>"
    )


@each_case(
    "code", ["AccessDenied", "AuthorizationPermissionMismatch", "AuthorizationFailure", "AllAccessDisabled"]
)
def test_a_store_that_knows_us_and_says_no_denies(code):
    for kind in (PermissionDeniedError, GenericError):
        error = read_error(kind(told("403 Forbidden", code)))

        assert error == StoreError(Failure.DENIED, f"403 {code}")


@each_case(
    ("status", "code"),
    [
        ("403 Forbidden", "SignatureDoesNotMatch"),
        ("403 Forbidden", "InvalidAccessKeyId"),
        ("403 Forbidden", "RequestTimeTooSkewed"),
        ("403 Forbidden", "AuthenticationFailed"),
        ("400 Bad Request", "ExpiredToken"),
        ("401 Unauthorized", "AccessDenied"),
        ("500 Internal Server Error", "AccessDenied"),
        ("503 Service Unavailable", "SlowDown"),
    ],
)
def test_an_error_is_not_a_denial(status, code):
    assert read_error(PermissionDeniedError(told(status, code))).failure is Failure.FAILED


def test_a_refusal_without_a_reason_is_not_a_denial():
    error = read_error(PermissionDeniedError("Server returned non-2xx status code: 403 Forbidden: "))

    assert error == StoreError(Failure.FAILED, "403")


@pytest.mark.parametrize("exc", [GenericError("connection refused"), RuntimeError("x"), OSError("x")])
def test_silence_is_a_failure(exc):
    assert read_error(exc).failure is Failure.FAILED


@pytest.mark.parametrize(
    "exc",
    [FileNotFoundError("x"), ValueError("bad path"), GenericError(told("404 Not Found", "NoSuchBucket"))],
)
def test_what_is_not_there_is_missing(exc):
    assert read_error(exc).failure is Failure.MISSING


def test_a_credential_that_could_not_be_had_is_a_failure():
    exc = UnauthenticatedError(told("403 Forbidden", "AccessDenied"))

    assert read_error(exc).failure is Failure.FAILED


def test_the_words_are_a_status_and_a_code_and_never_the_answer():
    answer = told("403 Forbidden", "SignatureDoesNotMatch", f"<CanonicalRequest>{TOKEN}</CanonicalRequest>")
    exc = PermissionDeniedError(f"{answer}\n\nDebug source:\n{TOKEN}")

    assert read_error(exc).words == "403 SignatureDoesNotMatch"


def test_a_reason_in_json_is_read_too():
    exc = PermissionDeniedError(
        'Server returned non-2xx status code: 403 Forbidden: {"error": {"errors": [{"reason": "forbidden"}]}}'
    )

    assert read_error(exc) == StoreError(Failure.DENIED, "403 forbidden")


def test_what_a_path_says_is_not_what_the_store_says():
    path = "t/404 Not Found <Code>AccessDenied</Code>"
    exc = PermissionDeniedError(f"lacked privileges for path {path}: {told('403 Forbidden', 'ExpiredToken')}")

    assert read_error(exc) == StoreError(Failure.FAILED, "403 ExpiredToken")
    assert read_error(GenericError(f"timed out for path {path}")).failure is Failure.FAILED


def test_an_answer_that_came_without_obstore_is_passed_on():
    error = judge("403", "AccessDenied")

    assert read_error(StoreRefused(error)) is error
