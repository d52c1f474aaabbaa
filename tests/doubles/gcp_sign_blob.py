"""A double of signBlob: Google signs with keys that it keeps, one blob at a time or in batches.

From "projects.serviceAccounts.signBlob" and from "Batching requests" of Google's APIs.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from aiohttp import web
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.doubles.gcp_identity import GoogleIdentity, Refused
from tests.doubles.server import Clock, Faults

# How long a key is good for after it has made its last signature.
_AFTERLIFE = timedelta(hours=12)
_MOST_IN_BATCH = 100
_PATH = re.compile(r"/v1/projects/-/serviceAccounts/([^/:]+):signBlob")
_REASONS = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}


@dataclass(kw_only=True)
class ManagedKey:
    """A key of Google's own; None while it is the one that signs."""

    private: rsa.RSAPrivateKey = field(repr=False)
    valid_to: datetime | None = None


@dataclass(kw_only=True)
class BlobService:
    """What a test can count and spoil."""

    clock: Clock
    identity: GoogleIdentity
    faults: Faults = field(default_factory=Faults)
    # How long a request takes, whatever it asks for.
    delay: timedelta = timedelta(0)
    takes_batches: bool = True
    # The answers to a batch may come in any order.
    answers_backwards: bool = True
    # A status for the call of that number, counted from the first, or None to answer it.
    spoil: Callable[[int], int | None] = lambda _: None
    # Every request that arrived, by how many calls were in it.
    requests: list[int] = field(default_factory=list)
    # What was signed, in the order of arrival.
    signed: list[bytes] = field(default_factory=list)
    _calls: int = 0
    _keys: dict[str, list[ManagedKey]] = field(default_factory=dict, repr=False)

    def keys_of(self, email: str) -> list[rsa.RSAPublicKey]:
        """Return the public halves of the keys whose signatures are still good."""
        keys = self._keys.get(email, ())
        good = [key for key in keys if key.valid_to is None or self.clock() < key.valid_to]
        return [key.private.public_key() for key in good]

    def rotate(self, email: str) -> None:
        """Sign with another key from now on."""
        keys = self._keys.setdefault(email, [])
        for key in keys:
            key.valid_to = key.valid_to or self.clock() + _AFTERLIFE
        keys.append(ManagedKey(private=_new_key(len(keys))))

    def add_routes(self, app: web.Application) -> None:
        app.router.add_post("/v1/projects/-/serviceAccounts/{email}:signBlob", self._single)
        app.router.add_post("/batch", self._batch)

    async def _single(self, request: web.Request) -> web.Response:
        self.requests.append(1)
        await asyncio.sleep(self.delay.total_seconds())
        if fault := self.faults.take():
            return fault
        status, fields, headers = self._answer(
            request.headers.get("Authorization"), request.match_info["email"], await request.read()
        )
        return web.json_response(fields, status=status, headers=headers)

    async def _batch(self, request: web.Request) -> web.Response:
        parts = split_batch(request.headers["Content-Type"], await request.read())
        self.requests.append(len(parts))
        await asyncio.sleep(self.delay.total_seconds())
        if fault := self.faults.take():
            return fault
        if not self.takes_batches:
            return web.json_response({"error": {"code": 404, "status": "NOT_FOUND"}}, status=404)
        if not 1 <= len(parts) <= _MOST_IN_BATCH or len(set(parts)) != len(parts):
            return web.json_response({"error": {"code": 400, "status": "INVALID_ARGUMENT"}}, status=400)
        answers = [
            nested_answer(name, *self._answer(request.headers.get("Authorization"), email, body))
            for name, (email, body) in parts.items()
        ]
        ordered = answers[::-1] if self.answers_backwards else answers
        body = "".join(f"--batch_x\r\n{answer}\r\n" for answer in ordered) + "--batch_x--\r\n"
        return web.Response(body=body.encode(), headers={"Content-Type": "multipart/mixed; boundary=batch_x"})

    def _answer(
        self, authorization: str | None, email: str, body: bytes
    ) -> tuple[int, dict[str, Any], dict[str, str]]:
        number, self._calls = self._calls, self._calls + 1
        if status := self.spoil(number):
            headers = {"Retry-After": "7"} if status == 429 else {}
            return status, _error(status, "spoilt by the test"), headers
        try:
            return 200, self._sign(authorization, email, body), {}
        except Refused as exc:
            return exc.status, _error(exc.status, str(exc)), {}

    def _sign(self, authorization: str | None, email: str, body: bytes) -> dict[str, Any]:
        caller = self.identity.find(authorization)
        if caller.boundary is not None or email not in caller.account.may_impersonate:
            raise Refused("permission_denied", "iam.serviceAccounts.signBlob is denied", 403)
        fields = json.loads(body)
        if set(fields) != {"payload"}:
            raise Refused("invalid_argument", "not understood here")
        blob = base64.b64decode(fields["payload"], validate=True)
        if email not in self._keys:
            self.rotate(email)
        self.signed.append(blob)
        key = self._keys[email][-1].private
        signature = key.sign(blob, padding.PKCS1v15(), hashes.SHA256())
        return {"keyId": str(len(self._keys[email])), "signedBlob": base64.b64encode(signature).decode()}


@cache
def _new_key(number: int) -> rsa.RSAPrivateKey:
    """Return the key that an account has after as many others; made once, and short, for it takes time."""
    return rsa.generate_private_key(public_exponent=65537, key_size=1024)


def split_batch(content_type: str, body: bytes) -> dict[str, tuple[str, bytes]]:
    """Return the calls of a batch by their names: whom to sign as, and the body."""
    boundary = re.fullmatch(r"multipart/mixed; boundary=([\w.-]+)", content_type)
    assert boundary is not None
    first, *parts, last = (b"\r\n" + body).split(f"\r\n--{boundary[1]}".encode())
    assert (first, last) == (b"", b"--\r\n")
    return dict(_call(part.decode()) for part in parts)


def _call(part: str) -> tuple[str, tuple[str, bytes]]:
    outer, inner, body = part.removeprefix("\r\n").split("\r\n\r\n", 2)
    headers = dict(line.split(": ", 1) for line in outer.split("\r\n"))
    assert headers["Content-Type"] == "application/http"
    line, *_ = inner.split("\r\n")
    method, path, _ = line.split(" ")
    found = _PATH.fullmatch(path)
    assert method == "POST"
    assert found is not None
    return headers["Content-ID"].strip("<>"), (found[1], body.encode())


def nested_answer(name: str, status: int, fields: dict[str, Any], headers: dict[str, str]) -> str:
    """Return the part of a batch's answer that is to the call of that name."""
    content = json.dumps(fields, indent=2)
    lines = (
        "Content-Type: application/http",
        f"Content-ID: <response-{name}>",
        "",
        f"HTTP/1.1 {status} {'OK' if status == 200 else 'Refused'}",
        "Content-Type: application/json; charset=UTF-8",
        *(f"{name}: {value}" for name, value in headers.items()),
        f"Content-Length: {len(content)}",
        "",
        content,
    )
    return "\r\n".join(lines)


def _error(status: int, message: str) -> dict[str, Any]:
    word = _REASONS.get(status, "UNKNOWN")
    return {"error": {"code": status, "message": message, "status": word}}
