"""Has Google sign with the keys that it keeps for a service account: IAM Credentials' signBlob."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar
from urllib.parse import quote

from gateway.errors import Unavailable
from gateway.ports import Clock
from vendors.gcp.batch import batch_request, read_batch
from vendors.gcp.config import Account
from vendors.gcp.identity import SourceToken
from vendors.http import Call, Reply, Request

# Google names no number for this API; of those that it names for others in its cloud, this is the least.
_MOST_IN_BATCH: Final = 100
_MOST_BATCHES: Final = 8
_MOST_CALLS: Final = 32
_OK: Final = 200
_THROTTLED: Final = 429
# A hiccup of one call among thousands should not cost the others.
_PASSING: Final = frozenset({500, 502, 503, 504})
# What is answered where there are no batches, such as at a private endpoint that knows single methods only.
_NO_BATCHES: Final = frozenset({400, 404, 405, 501})
# One such answer may be a mishap, and call by call takes far longer.
_WITHOUT_BATCHES: Final = timedelta(minutes=5)
_EXHAUSTED: Final = "RESOURCE_EXHAUSTED"
_WORD: Final = re.compile(r"[A-Z_]{1,40}")
# A key of 1,024 bits makes this many bytes; Google's are longer.
_LEAST_BYTES: Final = 128
_NEVER: Final = datetime.min.replace(tzinfo=UTC)

Value = TypeVar("Value")

log = logging.getLogger(__name__)


class SignBlob:
    """All that it is asked for at once is signed, or nothing is."""

    def __init__(
        self,
        *,
        account: Account,
        token: Callable[[], Awaitable[SourceToken]],
        call: Call,
        url: str,
        clock: Clock,
    ) -> None:
        self.account = account
        self._token = token
        self._call = call
        self._url = url
        self._clock = clock
        self._batches = asyncio.Semaphore(_MOST_BATCHES)
        self._calls = asyncio.Semaphore(_MOST_CALLS)
        # When a batch was last refused as such.
        self._unbatched_at = _NEVER
        # Since when, and for how long, Google has asked to be left alone.
        self._paused_at, self._pause = _NEVER, timedelta()

    async def sign(self, messages: Sequence[bytes]) -> list[bytes]:
        """Return the signature of each message, in order; the caller names none twice."""
        self._check_pause()
        headers = {"Authorization": f"Bearer {(await self._token()).value}"}
        parts = [
            messages[start : start + _MOST_IN_BATCH] for start in range(0, len(messages), _MOST_IN_BATCH)
        ]
        signed = await _together(self._sign(headers, part) for part in parts)
        return [signature for part in signed for signature in part]

    async def _sign(self, headers: Mapping[str, str], messages: Sequence[bytes]) -> list[bytes]:
        replies = dict(enumerate(await self._ask(headers, messages)))
        if again := [number for number, reply in replies.items() if reply.status in _PASSING]:
            later = await self._ask(headers, [messages[number] for number in again])
            replies |= dict(zip(again, later, strict=True))
        return [self._signature(replies[number]) for number in range(len(messages))]

    async def _ask(self, headers: Mapping[str, str], messages: Sequence[bytes]) -> list[Reply]:
        if len(messages) > 1 and self._has_batches():
            async with self._batches:
                self._check_pause()
                replies = await self._ask_at_once(headers, messages)
            if replies is not None:
                return replies
        return await _together(self._ask_for_one(headers, message) for message in messages)

    async def _ask_at_once(self, headers: Mapping[str, str], messages: Sequence[bytes]) -> list[Reply] | None:
        """Return the answers to a batch, or None where there are no batches."""
        bodies = [self._body(message) for message in messages]
        reply = await self._call(batch_request(f"{self._url}/batch", headers, self._path, bodies))
        if reply.status in _NO_BATCHES:
            log.warning("no batches at the endpoint of signBlob, so that files are signed call by call")
            self._unbatched_at = self._clock()
            return None
        if reply.status in _PASSING:
            return [reply] * len(messages)
        if reply.status != _OK:
            raise self._error(reply)
        try:
            return read_batch(reply, len(messages))
        except ValueError as exc:
            raise _nonsense(str(exc)) from None

    async def _ask_for_one(self, headers: Mapping[str, str], message: bytes) -> Reply:
        async with self._calls:
            self._check_pause()
            reply = await self._call(
                Request(
                    method="POST",
                    url=f"{self._url}{self._path}",
                    headers={**headers, "Content-Type": "application/json"},
                    body=self._body(message),
                )
            )
        if reply.status == _THROTTLED:
            # At once, so that the others who wait to ask do not.
            raise self._error(reply)
        return reply

    @property
    def _path(self) -> str:
        return f"/v1/{_resource(self.account.email)}:signBlob"

    def _body(self, message: bytes) -> bytes:
        fields: dict[str, object] = {"payload": base64.b64encode(message).decode()}
        if self.account.delegates:
            fields["delegates"] = [_resource(email) for email in self.account.delegates]
        return json.dumps(fields).encode()

    def _signature(self, reply: Reply) -> bytes:
        if reply.status != _OK:
            raise self._error(reply)
        found = reply.fields().get("signedBlob")
        try:
            signature = base64.b64decode(found, validate=True) if isinstance(found, str) else b""
        except binascii.Error:
            signature = b""
        if len(signature) < _LEAST_BYTES:
            raise _nonsense("signBlob answered without a signature")
        return signature

    def _has_batches(self) -> bool:
        passed = self._clock() - self._unbatched_at
        # A clock that was set back does not make it longer.
        return not timedelta() <= passed < _WITHOUT_BATCHES

    def _check_pause(self) -> None:
        passed = self._clock() - self._paused_at
        # A clock that was set back does not make it longer.
        if timedelta() <= passed < self._pause:
            raise _busy(self._pause - passed)

    def _error(self, reply: Reply) -> Unavailable:
        word = _word(reply)
        log.warning("signBlob as %s was refused: %d %s", self.account.email, reply.status, word)
        if reply.is_throttling or word == _EXHAUSTED:
            self._paused_at, self._pause = self._clock(), reply.retry_after
            return _busy(reply.retry_after)
        return Unavailable("the storage's provider gives no signatures at the moment")


def _resource(email: str) -> str:
    return f"projects/-/serviceAccounts/{quote(email, safe='@')}"


def _word(reply: Reply) -> str:
    """Return Google's word for a failure; its sentences may repeat what was sent."""
    error = reply.fields().get("error")
    word = error.get("status") if isinstance(error, dict) else None
    return word if isinstance(word, str) and _WORD.fullmatch(word) else "no code"


async def _together(work: Iterable[Coroutine[Any, Any, Value]]) -> list[Value]:
    """Return what each returns, in order; the first failure ends the others."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _busy(wait: timedelta) -> Unavailable:
    return Unavailable("the storage's provider is busy; try again later", retry_after=wait)


def _nonsense(reason: str) -> Unavailable:
    log.error("no URL was signed: %s", reason)
    return Unavailable("the storage's provider gave no usable signatures")
