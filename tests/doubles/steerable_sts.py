"""A token service that does as a test says: slow, throttling, down, or lying about what it gave.

Its session tokens say what they are for, so that a test can tell whether a recipient was given his own.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.sax.saxutils import escape

from aiohttp import web

_OK = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey><SessionToken>{token}</SessionToken>
<Expiration>{expiration}</Expiration></Credentials><PackedPolicySize>17</PackedPolicySize></AssumeRoleResult>
</AssumeRoleResponse>"""
_ERROR = """<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
<Code>{code}</Code><Message>as the test said</Message></Error><RequestId>0</RequestId></ErrorResponse>"""
_THROTTLING = "Throttling"


@dataclass(frozen=True, slots=True)
class Minted:
    """What a session was asked for."""

    prefix: str
    recipient: str


@dataclass(eq=False)
class SteerableSts:
    """Counts what it mints. Its attributes may be changed while it runs."""

    endpoint: str = ""
    delay: timedelta = timedelta(0)
    # Calls wait until it is set.
    blocked_until: asyncio.Event | None = None
    # The code of the error that every call gets.
    error: str = ""
    # Whether connections are cut without an answer.
    down: bool = False
    # What it says of the expiration, whatever was asked for.
    life: timedelta | None = None
    mints: Counter[Minted] = field(default_factory=Counter)
    calls: int = 0
    # Set while a call waits for its delay or is blocked.
    busy: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.Response:
        form = await request.post()
        self.calls += 1
        if self.down:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        self.busy.set()
        await asyncio.sleep(self.delay.total_seconds())
        if self.blocked_until is not None:
            await self.blocked_until.wait()
        self.busy.clear()
        if self.error:
            status = 400 if self.error == _THROTTLING else 403
            return web.Response(status=status, text=_ERROR.format(code=self.error), content_type="text/xml")
        return web.Response(text=self._session(form), content_type="text/xml")

    def _session(self, form: Any) -> str:
        minted = Minted(_prefix(json.loads(form["Policy"])), form["RoleSessionName"])
        self.mints[minted] += 1
        life = timedelta(seconds=int(form["DurationSeconds"])) if self.life is None else self.life
        expires_at = datetime.now(UTC) + life
        token = base64.b64encode(
            json.dumps({"prefix": minted.prefix, "recipient": minted.recipient}).encode()
        ).decode()
        return _OK.format(
            key=f"ASIA{secrets.token_hex(8).upper()}",
            secret=secrets.token_hex(20),
            token=escape(token),
            expiration=expires_at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        )


def read_token(session_token: str) -> Minted:
    """Return what a session of this service opens, and whom it names."""
    found = json.loads(base64.b64decode(session_token))
    return Minted(found["prefix"], found["recipient"])


@asynccontextmanager
async def running_sts() -> AsyncIterator[SteerableSts]:
    """Serve on a free port of loopback until the block is left."""
    sts = SteerableSts()
    application = web.Application()
    application.router.add_post("/", sts.handle)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        address = runner.addresses[0]
        sts.endpoint = f"http://{address[0]}:{address[1]}"
        yield sts
    finally:
        await runner.cleanup()


def _prefix(policy: Any) -> str:
    """Return the one directory that a policy lets list."""
    (found,) = (
        statement["Condition"]["StringLike"]["s3:prefix"]
        for statement in policy["Statement"]
        if statement["Action"] == "s3:ListBucket"
    )
    assert isinstance(found, str)
    return found
