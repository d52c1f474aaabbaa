"""Google's signBlob as the gateway calls it, without a socket."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from datetime import datetime, timedelta

from tests.doubles.gcp_sign_blob import nested_answer, split_batch
from tests.unit.vendors.gcp.google import NOON, SHARER
from vendors.gcp.config import Account
from vendors.gcp.identity import SourceToken
from vendors.gcp.pause import Pause
from vendors.gcp.sign_blob import SignBlob
from vendors.http import Call, Reply, Request

IAM_URL = "https://iamcredentials.googleapis.com"

Answer = tuple[int, dict[str, object], dict[str, str]]


def blob_signature(message: bytes) -> bytes:
    """Return what the fake makes of a message."""
    return hashlib.sha512(message).digest() * 4


def refusal(status: int, word: str = "", **headers: str) -> Answer:
    return status, {"error": {"code": status, "status": word, "message": "secret-in-the-words"}}, headers


class FakeIam:
    """Answers one by one or in batches, with signatures that tell what was signed."""

    def __init__(self) -> None:
        self.now = NOON
        self.requests: list[Request] = []
        # How many calls were in each request, and the bodies of all calls with what they ask to sign.
        self.sizes: list[int] = []
        self.bodies: list[dict[str, object]] = []
        self.messages: list[bytes] = []
        # What is answered to a call, by its number from the first on, in place of a signature.
        self.spoilt: dict[int, Answer] = {}
        # What is answered to requests as a whole, once each.
        self.replies: list[Reply] = []
        self.takes_batches = True
        self.backwards = True
        self.most_underway = 0
        # How long it was waited for, each time.
        self.slept: list[float] = []
        self.underway = 0

    def clock(self) -> datetime:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += timedelta(seconds=seconds)

    async def token(self) -> SourceToken:
        return SourceToken(value="the-token", expires_at=None)

    def client(self, account: Account | None = None, call: Call | None = None) -> SignBlob:
        return SignBlob(
            account=account or Account(email=SHARER),
            token=self.token,
            call=call or self.call,
            url=IAM_URL,
            clock=self.clock,
            pause=Pause(self.clock, self.sleep, lambda: 0.0),
        )

    async def call(self, request: Request) -> Reply:
        self.requests.append(request)
        self.underway += 1
        self.most_underway = max(self.most_underway, self.underway)
        # Others get to ask before this one is answered.
        await asyncio.sleep(0)
        self.underway -= 1
        return self._answer(request)

    def _answer(self, request: Request) -> Reply:
        is_batch = request.url.endswith("/batch")
        calls = split_batch(request.headers["Content-Type"], request.body) if is_batch else {}
        self.sizes.append(len(calls) or 1)
        if self.replies:
            return self.replies.pop(0)
        if not is_batch:
            status, fields, headers = self._sign(request.body)
            return Reply(status=status, headers=headers, body=json.dumps(fields).encode())
        if not self.takes_batches:
            return Reply(status=404)
        parts = [nested_answer(name, *self._sign(body)) for name, (_, body) in calls.items()]
        return batch_of(parts[::-1] if self.backwards else parts)

    def _sign(self, body: bytes) -> Answer:
        self.bodies.append(json.loads(body))
        self.messages.append(_message(self.bodies[-1]))
        if spoilt := self.spoilt.get(len(self.bodies) - 1):
            return spoilt
        signature = blob_signature(self.messages[-1])
        return 200, {"keyId": "1", "signedBlob": base64.b64encode(signature).decode()}, {}


def _message(body: dict[str, object]) -> bytes:
    return base64.b64decode(str(body["payload"]))


def batch_of(parts: list[str]) -> Reply:
    """Return the answer to a batch, of these parts."""
    body = "".join(f"--b\r\n{part}\r\n" for part in parts) + "--b--"
    return Reply(status=200, headers={"content-type": "multipart/mixed; boundary=b"}, body=body.encode())
