from __future__ import annotations

import base64
import logging
from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.errors import Unavailable
from tests.background import finish_background
from tests.cases import each_case
from tests.unit.vendors.azure.doubles import (
    NOON,
    SECRET,
    FakeClock,
    FakeHttp,
    FakeTokens,
    answer_as_asked,
    key_answer,
    options,
)
from vendors.azure.delegation_key import DelegationKeys, parse_key
from vendors.http import Reply

HOUR = timedelta(hours=1)
ANSWER = key_answer("2026-01-02T11:55:00Z", "2026-01-02T16:00:00Z")


def keys(answer=answer_as_asked, *, clock=None, **given) -> tuple[FakeHttp, DelegationKeys]:
    http = FakeHttp(answer)
    made = DelegationKeys(
        storage="lake",
        endpoint="https://lakeaccount.blob.core.windows.net",
        options=options(**given),
        tokens=FakeTokens(),
        http=http,
        clock=clock or FakeClock(),
    )
    return http, made


async def test_key_is_asked_for_as_the_identity():
    http, made = keys()
    await made.get(HOUR)

    (request,) = http.requests
    assert request.method == "POST"
    assert request.url == (
        "https://lakeaccount.blob.core.windows.net/?restype=service&comp=userdelegationkey"
    )
    assert request.headers["authorization"] == "Bearer own-token"
    assert request.headers["x-ms-version"] == "2023-11-03"
    assert request.body == (
        b'<?xml version="1.0" encoding="utf-8"?>'
        b"<KeyInfo><Start>2026-01-02T11:55:00Z</Start><Expiry>2026-01-02T16:00:00Z</Expiry></KeyInfo>"
    )


async def test_key_is_what_azure_wrote():
    key = await keys()[1].get(HOUR)

    assert (key.start, key.expiry, key.secret) == ("2026-01-02T11:55:00Z", "2026-01-02T16:00:00Z", SECRET)
    assert (key.starts_at, key.expires_at) == (NOON - timedelta(minutes=5), NOON + 4 * HOUR)


async def test_key_serves_many_credentials():
    http, made = keys()
    for _ in range(20):
        await made.get(HOUR)

    assert len(http.requests) == 1


async def test_key_is_asked_for_twice_as_long_as_a_long_credential():
    key = await keys()[1].get(12 * HOUR)

    assert key.expires_at == NOON + 24 * HOUR


@pytest.mark.parametrize("life", [timedelta(days=5), timedelta(days=30)])
async def test_key_is_never_asked_for_longer_than_azure_gives(life):
    key = await keys()[1].get(life)

    assert key.expires_at - key.starts_at < timedelta(days=7)


async def test_key_of_a_given_time_starts_earlier_by_the_skew_and_is_not_kept():
    http, made = keys(clockSkew="10m")
    for _ in range(2):
        key = await made.ask(NOON - HOUR, NOON + HOUR)

    assert (key.starts_at, key.expires_at) == (NOON - HOUR - timedelta(minutes=10), NOON + HOUR)
    assert len(http.requests) == 2


async def test_key_of_a_given_time_is_never_asked_for_longer_than_azure_gives():
    key = await keys()[1].ask(NOON, NOON + timedelta(days=30))

    assert timedelta(days=6, hours=23) < key.expires_at - key.starts_at < timedelta(days=7)


async def test_forgotten_key_is_asked_for_again():
    http, made = keys()
    await made.get(HOUR)
    made.forget()
    await made.get(HOUR)

    assert len(http.requests) == 2


async def test_missing_role_is_named_in_the_log_and_not_to_the_recipient(caplog):
    refused = Reply(status=403, headers={"x-ms-error-code": "AuthorizationPermissionMismatch"})
    with pytest.raises(Unavailable) as raised:
        await keys(lambda _: refused)[1].get(HOUR)

    assert "Storage Blob Delegator" in caplog.text
    assert "AuthorizationPermissionMismatch" in caplog.text
    assert "Azure" not in raised.value.message
    assert "Delegator" not in raised.value.message
    assert raised.value.retry_after is None


@each_case(
    ("status", "headers", "wait"),
    [
        (429, {"retry-after": "7"}, timedelta(seconds=7)),
        (503, {"x-ms-error-code": "ServerBusy", "retry-after": "30"}, timedelta(seconds=30)),
        (503, {}, timedelta(seconds=1)),
        (503, {"retry-after": "99999999999999999999"}, timedelta(minutes=1)),
    ],
)
async def test_throttling_says_how_long_to_wait(status, headers, wait):
    with pytest.raises(Unavailable) as raised:
        await keys(lambda _: Reply(status=status, headers=headers))[1].get(HOUR)

    assert raised.value.retry_after == wait


async def test_other_failure_asks_for_no_pause():
    with pytest.raises(Unavailable) as raised:
        await keys(lambda _: Reply(status=500))[1].get(HOUR)

    assert raised.value.retry_after is None


async def test_key_that_has_expired_already_is_not_taken(caplog):
    with pytest.raises(Unavailable):
        await keys(lambda _: key_answer("2026-01-02T10:00:00Z", "2026-01-02T11:00:00Z"))[1].get(HOUR)

    assert "compare the clocks" in caplog.text


async def test_key_in_hand_signs_while_the_next_one_is_fetched():
    clock = FakeClock()
    http, made = keys(clock=clock)
    first = await made.get(HOUR)
    clock.now += 2 * HOUR + timedelta(minutes=31)

    assert await made.get(HOUR) is first
    await finish_background()
    assert (await made.get(HOUR)).expires_at == clock.now + 4 * HOUR
    assert len(http.requests) == 2


async def test_key_in_hand_outlives_an_outage_until_its_last_minutes():
    clock = FakeClock()
    _, made = keys(
        lambda request: answer_as_asked(request) if clock.now == NOON else Reply(status=500), clock=clock
    )
    first = await made.get(HOUR)
    clock.now += 4 * HOUR - timedelta(minutes=6)
    assert await made.get(HOUR) is first
    clock.now += timedelta(minutes=1)

    with pytest.raises(Unavailable):
        await made.get(HOUR)


@pytest.mark.parametrize(
    ("date", "warned"),
    [
        ("Fri, 02 Jan 2026 12:00:20 GMT", False),
        ("Fri, 02 Jan 2026 11:56:00 GMT", False),
        ("Fri, 02 Jan 2026 11:54:00 GMT", True),
        ("Fri, 02 Jan 2026 13:00:00 GMT", True),
        ("", False),
        ("yesterday", False),
        ("Fri, 02 Jan 99999999999999999999 13:00:00 GMT", False),
    ],
)
async def test_clock_that_differs_from_azure_is_warned_of(date, warned, caplog):
    _, made = keys(lambda request: replace(answer_as_asked(request), headers={"date": date}))
    await made.get(HOUR)

    assert ("clock" in caplog.text) == warned


@each_case(
    "body",
    [
        b"",
        b"<html>",
        b"not xml",
        b"<UserDelegationKey/>",
        ANSWER.body.replace(b"<Value>", b"<Value>!"),
        ANSWER.body.replace(base64.b64encode(SECRET), b""),
        ANSWER.body.replace(b"2026-01-02T16:00:00Z", b"tomorrow"),
        ANSWER.body.replace(b"2026-01-02T16:00:00Z", b"2026-01-02T16:00:00"),
        ANSWER.body.replace(b"11111111-", b"11111111&#10;"),
        ANSWER.body.replace(b"<UserDelegationKey>", b"<!DOCTYPE x [<!ENTITY a 'b'>]><UserDelegationKey>"),
        b"<!DOCTYPE x SYSTEM 'file:///etc/passwd'>" + ANSWER.body[3:],
    ],
)
def test_what_is_not_a_key_is_refused(body):
    with pytest.raises(Unavailable):
        parse_key(body)


def test_key_prints_no_secret():
    key = parse_key(ANSWER.body)

    assert repr(SECRET) not in repr(key)
    assert "AAEC" not in repr(key)


async def test_nothing_is_logged_of_token_or_key(caplog):
    caplog.set_level(logging.DEBUG)
    await keys()[1].get(HOUR)

    assert "own-token" not in caplog.text
