"""A storage on R2 and Cloudflare's answers, without a socket."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from gateway.errors import Unavailable
from vendors.http import Reply, Request
from vendors.r2.config import R2Options, parse

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
ACCOUNT = "0123456789abcdef0123456789abcdef"
PARENT = "fedcba9876543210fedcba9876543210"
SECRET = "5ec7e7" * 10 + "beef"
API_TOKEN = "api-token-of-the-gateway"
ENDPOINT = f"https://{ACCOUNT}.r2.cloudflarestorage.com"


def raw_options(**changes: object) -> dict[str, object]:
    identity = {"kind": "keys", "accessKeyId": PARENT, "secretAccessKey": {"value": SECRET}}
    return {"accountId": ACCOUNT, "identity": identity, **changes}


def options(**changes: object) -> R2Options:
    return parse(raw_options(**changes))


class FakeCloudflare:
    """Answers every call with ``reply``, and remembers what was sent."""

    def __init__(self) -> None:
        self.now = NOON
        self.sent: list[Request] = []
        self.reply: Reply | None = success(accessKeyId="k", secretAccessKey="s", sessionToken="t")

    def clock(self) -> datetime:
        return self.now

    async def call(self, request: Request) -> Reply:
        self.sent.append(request)
        if self.reply is None:
            raise Unavailable("the storage's provider does not answer; try again later")
        return self.reply

    def body(self) -> Any:
        return json.loads(self.sent[-1].body)


def success(**result: object) -> Reply:
    fields = {"result": result, "errors": [], "messages": [], "success": True}
    return Reply(status=200, body=json.dumps(fields).encode())


def failure(status: int, *codes: int) -> Reply:
    errors = [{"code": code, "message": f"bad {API_TOKEN}"} for code in codes]
    return Reply(status=status, body=json.dumps({"errors": errors, "success": False}).encode())
