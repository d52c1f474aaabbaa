from __future__ import annotations

import json

import pytest

from gateway.domain.credential import AwsTempCredentials, Credential, GcpOauthToken
from gateway.domain.location import parse_location
from gateway.domain.probe import Action, Attempt, Verdict
from tests.unit.vendors.gcp.google import NOON, FakeGoogle, no_answer, options
from vendors.gcp.identity import Identity
from vendors.gcp.probe import GcpProbe
from vendors.http import Reply

TABLE = parse_location("gs://lake/sales/orders")
CREDENTIAL = Credential(id="1", secret=GcpOauthToken(oauth_token="narrow"), expires_at=NOON)


@pytest.fixture
def google():
    return FakeGoogle()


def make(google: FakeGoogle, call=None) -> GcpProbe:
    return GcpProbe(
        identity=Identity(options(), google.transport, google.clock),
        call=call or google.call,
        storage_url="https://storage.googleapis.com",
    )


def error(code: int, reason: str = "", **more: object) -> Reply:
    errors = [{"reason": reason, "message": "narrow"}] if reason else []
    return Reply(status=code, body=json.dumps({"error": {"errors": errors, **more}}).encode())


@pytest.mark.parametrize(
    ("action", "path", "method", "target"),
    [
        (
            Action.READ,
            "a b/ö.json",
            "GET",
            "/storage/v1/b/lake/o/sales%2Forders%2Fa%20b%2F%C3%B6.json?alt=media",
        ),
        (
            Action.LIST,
            "_delta_log/",
            "GET",
            "/storage/v1/b/lake/o?prefix=sales%2Forders%2F_delta_log%2F&maxResults=1000&fields=items%2Fname",
        ),
        (
            Action.WRITE,
            "x&y",
            "POST",
            "/upload/storage/v1/b/lake/o?uploadType=media&name=sales%2Forders%2Fx%26y",
        ),
        (Action.DELETE, "x", "DELETE", "/storage/v1/b/lake/o/sales%2Forders%2Fx"),
    ],
)
async def test_action_is_sent_with_the_credential(google, action, path, method, target):
    google.reply = Reply(status=200, body=b"{}")

    attempt = await make(google).attempt(CREDENTIAL, action, TABLE, path)

    (request,) = google.exchanged
    assert attempt.verdict is Verdict.ALLOWED
    assert (request.method, request.url) == (method, f"https://storage.googleapis.com{target}")
    assert request.headers["Authorization"] == "Bearer narrow"


async def test_without_a_credential_it_acts_as_the_storage(google):
    google.reply = Reply(status=204)

    await make(google).attempt(None, Action.DELETE, TABLE, "x")

    assert google.exchanged[0].headers["Authorization"] == "Bearer source-1"


async def test_prefix_without_a_slash_is_listed_as_it_is(google):
    google.reply = Reply(status=200, body=json.dumps({"items": [{"name": "sales/orders2/x"}]}).encode())

    attempt = await make(google).attempt(CREDENTIAL, Action.LIST, parse_location("gs://lake/sales"), "orders")

    assert "prefix=sales%2Forders&" in google.exchanged[0].url
    assert attempt == Attempt(verdict=Verdict.ALLOWED, detail="200", names=("orders2/x",))


@pytest.mark.parametrize(
    ("reply", "verdict", "detail"),
    [
        (error(403, "forbidden"), Verdict.DENIED, "403 forbidden"),
        (error(403, status="PERMISSION_DENIED"), Verdict.DENIED, "403 PERMISSION_DENIED"),
        (error(404, "notFound"), Verdict.MISSING, "404 notFound"),
        (error(403, "rateLimitExceeded"), Verdict.FAILED, "403 rateLimitExceeded"),
        (error(403, "accountDisabled"), Verdict.FAILED, "403 accountDisabled"),
        (error(401, "authError"), Verdict.FAILED, "401 authError"),
        (error(500), Verdict.FAILED, "500"),
        (Reply(status=403, body=b"<html>"), Verdict.FAILED, "403"),
        (Reply(status=403, body=b'{"error": "forbidden"}'), Verdict.FAILED, "403"),
        (Reply(status=302), Verdict.FAILED, "302"),
    ],
)
async def test_only_a_refusal_of_the_token_is_a_denial(google, reply, verdict, detail):
    google.reply = reply

    attempt = await make(google).attempt(CREDENTIAL, Action.READ, TABLE, "x")

    assert attempt == Attempt(verdict=verdict, detail=detail)


async def test_silence_proves_nothing(google):
    attempt = await make(google, no_answer).attempt(CREDENTIAL, Action.READ, TABLE, "x")

    assert attempt.verdict is Verdict.FAILED


async def test_credential_of_another_cloud_proves_nothing(google):
    keys = AwsTempCredentials(access_key_id="a", secret_access_key="b", session_token="c")
    foreign = Credential(id="1", secret=keys, expires_at=NOON)

    assert (await make(google).attempt(foreign, Action.READ, TABLE, "x")).verdict is Verdict.FAILED
    assert google.exchanged == []
