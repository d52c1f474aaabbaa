from __future__ import annotations

import json
import logging
from dataclasses import replace
from datetime import timedelta

import pytest
from google.auth import downscoped
from google.oauth2.credentials import Credentials

from gateway.domain.credential import GcpOauthToken
from gateway.domain.location import parse_location
from gateway.domain.scope import Scope
from gateway.errors import Unavailable, Unsupported
from tests.unit.vendors.gcp.google import NOON, STS_URL, FakeAnswer, FakeGoogle, granted, no_answer, options
from vendors.gcp.boundary import access_boundary
from vendors.gcp.identity import Identity
from vendors.gcp.issuer import GcpIssuer, exchange_request
from vendors.http import Reply

TABLE = parse_location("gs://lake/sales/orders")
SCOPE = Scope(location=TABLE, life=timedelta(hours=1))


@pytest.fixture
def google():
    return FakeGoogle()


@pytest.fixture
def issuer(google):
    return make(google)


def make(google: FakeGoogle, call=None) -> GcpIssuer:
    return GcpIssuer(
        identity=Identity(options(), google.transport, google.clock),
        call=call or google.call,
        sts_url=STS_URL,
        clock=google.clock,
    )


def refusal(status: int, error: object, **headers: str) -> Reply:
    body = json.dumps({"error": error, "error_description": "secret"}).encode()
    return Reply(status=status, body=body, headers=headers)


async def test_credential_is_the_narrowed_token_with_googles_end(google, issuer):
    credential = await issuer.issue(SCOPE)

    assert credential.secret == GcpOauthToken(oauth_token="narrow-of-source-1")
    assert credential.expires_at == NOON + timedelta(seconds=3000)
    assert google.boundary() == access_boundary(TABLE)
    assert "narrow" not in credential.id
    assert "narrow" not in repr(credential)


async def test_end_is_counted_from_before_the_call(google):
    async def slow(request):
        google.now += timedelta(seconds=30)
        return granted(access_token="narrow", expires_in=600)

    credential = await make(google, slow).issue(SCOPE)

    assert credential.expires_at == NOON + timedelta(seconds=600)


async def test_without_a_life_the_end_is_the_source_tokens(google, issuer):
    google.reply = granted(access_token="narrow")

    assert (await issuer.issue(SCOPE)).expires_at == NOON + timedelta(hours=1)


async def test_end_is_never_after_the_source_tokens(google, issuer):
    google.reply = granted(access_token="narrow", expires_in=40_000)

    assert (await issuer.issue(SCOPE)).expires_at == NOON + timedelta(hours=1)


@pytest.mark.parametrize("life", ["3600", 0, -1, 1.5, True, 10**12, []])
async def test_senseless_life_is_refused(google, issuer, life):
    google.reply = granted(access_token="narrow", expires_in=life)

    with pytest.raises(Unavailable):
        await issuer.issue(SCOPE)


@pytest.mark.parametrize("fields", [{}, {"access_token": ""}, {"access_token": None}, {"access_token": 7}])
async def test_answer_without_a_token_is_refused(google, issuer, fields):
    google.reply = granted(**fields, expires_in=3600)

    with pytest.raises(Unavailable):
        await issuer.issue(SCOPE)


async def test_answer_that_is_no_json_is_refused(google, issuer):
    google.reply = Reply(status=200, body=b"<html>")

    with pytest.raises(Unavailable):
        await issuer.issue(SCOPE)


async def test_token_that_was_not_narrowed_is_never_given_out(google, issuer, caplog):
    google.reply = granted(access_token="source-1", expires_in=3600)

    with pytest.raises(Unavailable):
        await issuer.issue(SCOPE)
    assert "source-1" not in caplog.text
    assert "gave back the token" in caplog.text


@pytest.mark.parametrize("status", [429, 503])
async def test_throttling_says_how_long_to_wait(google, issuer, status):
    google.reply = refusal(status, "slow_down", **{"retry-after": "7"})

    with pytest.raises(Unavailable) as caught:
        await issuer.issue(SCOPE)
    assert caught.value.retry_after == timedelta(seconds=7)


async def test_throttling_without_a_time_is_still_throttling(google, issuer):
    google.reply = refusal(429, "slow_down")

    with pytest.raises(Unavailable) as caught:
        await issuer.issue(SCOPE)
    assert caught.value.retry_after == timedelta(seconds=1)


async def test_boundary_that_google_refuses_is_refused_for_good(google, issuer):
    google.reply = refusal(400, "invalid_request")

    with pytest.raises(Unsupported):
        await issuer.issue(SCOPE)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, "invalid_grant"),
        (400, {"nested": 1}),
        (401, "invalid_client"),
        (403, "access_denied"),
        (404, ""),
        (500, "x"),
        (302, "x"),
    ],
)
async def test_refusal_of_the_gateway_itself_is_unavailable_and_logged(google, issuer, status, error, caplog):
    google.reply = refusal(status, error)

    with caplog.at_level(logging.WARNING), pytest.raises(Unavailable) as caught:
        await issuer.issue(SCOPE)
    assert caught.value.retry_after is None
    assert f"refused: {status}" in caplog.text
    assert "secret" not in caplog.text + caught.value.message


async def test_silence_is_unavailable(google):
    with pytest.raises(Unavailable):
        await make(google, no_answer).issue(SCOPE)


async def test_inexpressible_location_calls_nobody(google, issuer):
    with pytest.raises(Unsupported):
        await issuer.issue(replace(SCOPE, location=replace(TABLE, path="a\0b")))
    assert google.asked == google.exchanged == []


async def test_credential_does_not_depend_on_the_recipient(google, issuer):
    first = await issuer.issue(replace(SCOPE, recipient="a"))
    second = await issuer.issue(replace(SCOPE, recipient="b"))

    assert not issuer.names_recipients
    assert first == second


@pytest.mark.parametrize("path", ["sales/orders", "ö r'd\"ers/💧 +&=%41", ""])
def test_exchange_is_what_googles_own_library_sends(path):
    location = parse_location(f"gs://lake/{path}")
    sent = []

    def transport(url, method, headers, body):
        sent.append((url, method, headers, body))
        return FakeAnswer(200, {"access_token": "narrow", "expires_in": 1})

    downscoped.Credentials(FixedToken("source+/="), their_boundary(location)).refresh(transport)

    ours = exchange_request(STS_URL, "source+/=", access_boundary(location))
    assert sent == [(ours.url, ours.method, dict(ours.headers), ours.body)]


class FixedToken(Credentials):
    def refresh(self, request):
        """Keep the token."""


def their_boundary(location):
    (rule,) = access_boundary(location)["accessBoundary"]["accessBoundaryRules"]
    condition = rule.get("availabilityCondition")
    return downscoped.CredentialAccessBoundary(
        [
            downscoped.AccessBoundaryRule(
                available_resource=rule["availableResource"],
                available_permissions=rule["availablePermissions"],
                availability_condition=condition
                and downscoped.AvailabilityCondition(condition["expression"]),
            )
        ]
    )
