"""Google's token endpoints as google-auth and the gateway call them, without a socket."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import parse_qs, unquote

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from gateway.errors import Unavailable
from vendors.gcp.config import GcpOptions, parse
from vendors.http import Reply, Request

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
SHARER = "sharer@project.iam.gserviceaccount.com"
STS_URL = "https://sts.googleapis.com/v1/token"


@cache
def key_text() -> str:
    """Return a service account's key file."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return json.dumps(
        {
            "type": "service_account",
            "client_email": "gateway@project.iam.gserviceaccount.com",
            "private_key_id": "1",
            "private_key": pem.decode(),
            "token_uri": "https://oauth2.googleapis.com/token",
        }
    )


def options(**changes: object) -> GcpOptions:
    """Return the options of a storage whose identity impersonates, so that Google names an absolute end."""
    identity = {
        "kind": "serviceAccount",
        "key": {"value": key_text()},
        "impersonate": {"serviceAccount": SHARER},
    }
    return parse({"identity": identity, **changes})


class FakeGoogle:
    """Hands out ``source-1``, ``source-2`` and so on, and exchanges any of them for ``narrow-of-it``."""

    def __init__(self) -> None:
        self.now = NOON
        self.life = timedelta(hours=1)
        self.asked: list[tuple[str, bytes]] = []
        self.exchanged: list[Request] = []
        self.reply: Reply | None = None
        self.is_down = False
        self.takes = timedelta()
        self.gate = threading.Event()
        self.gate.set()
        self._count = 0

    def clock(self) -> datetime:
        return self.now

    def transport(self, url: str, method: str = "GET", body: Any = None, **_: object) -> FakeAnswer:
        """Answer google-auth, which waits in a thread."""
        self.gate.wait(timeout=60)
        self.asked.append((url, body or b""))
        self.now += self.takes
        if self.is_down:
            return FakeAnswer(403, {"error": "access_denied", "error_description": "secret-in-the-words"})
        if url.endswith(":generateAccessToken"):
            self._count += 1
            seconds = int(json.loads(body)["lifetime"].removesuffix("s"))
            end = self.now + min(self.life, timedelta(seconds=seconds))
            return FakeAnswer(
                200, {"accessToken": f"source-{self._count}", "expireTime": f"{end:%Y-%m-%dT%H:%M:%SZ}"}
            )
        return FakeAnswer(200, {"access_token": "base", "expires_in": 3600})

    async def call(self, request: Request) -> Reply:
        """Answer the gateway."""
        self.exchanged.append(request)
        if self.reply is not None:
            return self.reply
        form = parse_qs(request.body.decode())
        token = form["subject_token"][0]
        return granted(access_token=f"narrow-of-{token}", expires_in=3000)

    def boundary(self) -> Any:
        """Return the boundary of the last exchange, as Google would read it."""
        form = parse_qs(self.exchanged[-1].body.decode())
        return json.loads(unquote(form["options"][0]))


class FakeAnswer:
    def __init__(self, status: int, body: Mapping[str, object]) -> None:
        self.status = status
        self.data = json.dumps(body).encode()
        self.headers: Mapping[str, str] = {}


async def no_answer(request: Request) -> Reply:
    raise Unavailable("the storage's provider does not answer; try again later")


def granted(**fields: object) -> Reply:
    return Reply(status=200, body=json.dumps(fields).encode())
