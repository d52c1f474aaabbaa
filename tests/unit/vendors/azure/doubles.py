"""What the tests of the Azure vendor stand on: a clock, tokens, and answers that were written down before."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from gateway.errors import Unavailable
from vendors.azure.account import Account
from vendors.azure.account_key import AccountKey
from vendors.azure.config import AzureOptions, parse
from vendors.azure.delegation_key import DelegationKey, format_time
from vendors.azure.identity import Token
from vendors.http import Reply, Request
from vendors.xml import parse_xml

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
SECRET = bytes(range(32))
ACCOUNT = Account(
    name="lakeaccount", container="tables", endpoint="https://lakeaccount.blob.core.windows.net"
)


class FakeClock:
    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


class FakeTokens:
    async def get(self) -> Token:
        return Token(value="own-token", expires_at=NOON + timedelta(hours=1))


class FakeHttp:
    """Answers with what ``answer`` makes of each request, and keeps the requests."""

    def __init__(self, answer: Callable[[Request], Reply | Unavailable]) -> None:
        self._answer = answer
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> Reply:
        self.requests.append(request)
        answer = self._answer(request)
        if isinstance(answer, Unavailable):
            raise answer
        return answer


def account_key(secret: bytes = bytes(range(64))) -> AccountKey:
    return AccountKey(text=base64.b64encode(secret).decode(), secret=secret, read_at=NOON)


def options(**given: object) -> AzureOptions:
    return parse({"identity": {"kind": "chain"}, "hierarchicalNamespace": True, **given})


def delegation_key(
    *, starts_at: datetime = NOON - timedelta(minutes=5), life: timedelta = timedelta(hours=4)
) -> DelegationKey:
    expires_at = starts_at + timedelta(minutes=5) + life
    return DelegationKey(
        oid="11111111-2222-3333-4444-555555555555",
        tid="66666666-7777-8888-9999-000000000000",
        start=format_time(starts_at),
        expiry=format_time(expires_at),
        service="b",
        version="2023-11-03",
        secret=SECRET,
        starts_at=starts_at,
        expires_at=expires_at,
    )


def answer_as_asked(request: Request) -> Reply:
    """Return a key of just the time that was asked for."""
    root = parse_xml(request.body)
    return key_answer(root.findtext("Start", ""), root.findtext("Expiry", ""))


def key_answer(start: str, expiry: str, *, value: bytes = SECRET) -> Reply:
    """Return an answer to Get User Delegation Key, as its documentation shows it."""
    body = (
        '<?xml version="1.0" encoding="utf-8"?><UserDelegationKey>'
        "<SignedOid>11111111-2222-3333-4444-555555555555</SignedOid>"
        "<SignedTid>66666666-7777-8888-9999-000000000000</SignedTid>"
        f"<SignedStart>{start}</SignedStart><SignedExpiry>{expiry}</SignedExpiry>"
        "<SignedService>b</SignedService><SignedVersion>2023-11-03</SignedVersion>"
        f"<Value>{base64.b64encode(value).decode()}</Value></UserDelegationKey>"
    )
    return Reply(status=200, body=b"\xef\xbb\xbf" + body.encode())
