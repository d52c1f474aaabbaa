from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from gateway.errors import Unavailable
from tests.cases import each_case
from vendors.azure.errors import error_code, identity_unavailable, unavailable
from vendors.http import Reply

NEEDS = "Storage Blob Delegator"


def refused(status: int, code: str = "", **headers: str) -> Reply:
    return Reply(status=status, headers={"x-ms-error-code": code, **headers}, body=b"<Message>hush</Message>")


def told(reply: Reply) -> Unavailable:
    return unavailable(reply, "lake", doing="a delegation key", needs=NEEDS)


@each_case("code", ["", "has blanks", "line\nbreak", "x" * 81, "<b>", "é"])
def test_code_that_is_none_of_azures_is_left_out(code):
    assert error_code(refused(403, code)) == ""


def test_code_is_azures_own():
    assert error_code(refused(403, "AuthorizationPermissionMismatch")) == "AuthorizationPermissionMismatch"
    assert error_code(Reply(status=403)) == ""


@pytest.mark.parametrize("status", [429, 503])
def test_throttling_says_how_long_to_wait(caplog, status):
    with caplog.at_level(logging.WARNING):
        error = told(refused(status, "ServerBusy", **{"retry-after": "7"}))

    assert error.retry_after == timedelta(seconds=7)
    assert f"storage lake: Azure throttles a delegation key ({status} ServerBusy)" in caplog.text


def test_throttling_without_a_time_is_waited_for_all_the_same():
    waits = [told(refused(503, **headers)).retry_after for headers in ({}, {"retry-after": "soon"})]

    assert all(wait is not None and wait > timedelta(0) for wait in waits)


@pytest.mark.parametrize("status", [401, 403])
def test_refusal_tells_the_operator_which_role_is_missing(caplog, status):
    with caplog.at_level(logging.ERROR):
        error = told(refused(status, "AuthorizationPermissionMismatch"))

    assert f"its identity needs {NEEDS}" in caplog.text
    assert "AuthorizationPermissionMismatch" in caplog.text
    assert error.retry_after is None


@pytest.mark.parametrize("status", [400, 404, 409, 500])
def test_other_failure_gives_no_hint(caplog, status):
    with caplog.at_level(logging.ERROR):
        error = told(refused(status))

    assert f"({status} no code)" in caplog.text
    assert NEEDS not in caplog.text
    assert error.retry_after is None


@pytest.mark.parametrize("status", [400, 401, 403, 429, 500, 503])
def test_recipient_learns_nothing_of_azure(caplog, status):
    message = told(refused(status, "AuthorizationFailure")).message

    assert not {"Azure", "lake", "Authorization", NEEDS, str(status)} & set(message.split())
    assert "AuthorizationFailure" not in message
    assert "hush" not in message + caplog.text


def test_identity_without_a_token_is_explained_to_the_operator_alone(caplog):
    with caplog.at_level(logging.ERROR):
        error = identity_unavailable("lake", "invalid_client")

    assert "storage lake" in caplog.text
    assert "invalid_client" in caplog.text
    assert "invalid_client" not in error.message
