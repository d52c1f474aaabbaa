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
from typing import Any, Final
from urllib.parse import quote

from gateway.errors import Unavailable
from gateway.ports import Clock
from vendors.gcp.batch import batch_request, read_batch
from vendors.gcp.config import Account
from vendors.gcp.identity import SourceToken
from vendors.gcp.pause import Pause
from vendors.gcp.provider_turns import ProviderTurns
from vendors.gcp.unfinished import Unfinished
from vendors.http import Call, Reply, Request

# Google names no number for this API; of those that it names for others in its cloud, this is the least.
_MOST_IN_BATCH: Final = 100
_MOST_BATCHES: Final = 8
_MOST_CALLS: Final = 32
# For so long a page waits where Google asks for it: less than its caller does, who should have a reason.
_MOST_WAITED: Final = timedelta(seconds=20)
_OK: Final = 200
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

log = logging.getLogger(__name__)


class SignBlob:
    """All that it is asked for at once is signed, or nothing is; what was signed is not asked for again."""

    def __init__(
        self,
        *,
        account: Account,
        token: Callable[[], Awaitable[SourceToken]],
        call: Call,
        url: str,
        clock: Clock,
        pause: Pause,
    ) -> None:
        self.account = account
        self._token = token
        self._call = call
        self._url = url
        self._clock = clock
        self._pause = pause
        self._batches = ProviderTurns(_MOST_BATCHES)
        self._calls = ProviderTurns(_MOST_CALLS)
        self._unfinished = Unfinished()
        # When a batch was last refused as such.
        self._unbatched_at = _NEVER

    async def sign(self, messages: Sequence[bytes]) -> list[bytes]:
        """Return the signature of each message, in order; the caller names none twice."""
        signed = self._unfinished.take(messages)
        try:
            await self._complete(messages, signed)
        finally:
            if len(signed) < len(messages):
                self._unfinished.keep(signed)
        return [signed[message] for message in messages]

    async def _complete(self, messages: Sequence[bytes], signed: dict[bytes, bytes]) -> None:
        """Have those signed that are not; wait where Google asks for it, for a while."""
        waited = timedelta()
        while lacking := [message for message in messages if message not in signed]:
            if not self._pause.left:
                await self._sign_all(lacking, signed)
            if len(signed) < len(messages):
                waited += await self._pause.wait(_MOST_WAITED - waited)

    async def _sign_all(self, messages: Sequence[bytes], signed: dict[bytes, bytes]) -> None:
        """Add the signatures of the messages, but of those that Google does not take for now."""
        headers = {"Authorization": f"Bearer {(await self._token()).value}"}
        parts = [
            messages[start : start + _MOST_IN_BATCH] for start in range(0, len(messages), _MOST_IN_BATCH)
        ]
        await _together(self._sign(headers, part, signed) for part in parts)

    async def _sign(
        self,
        headers: Mapping[str, str],
        messages: Sequence[bytes],
        signed: dict[bytes, bytes],
        *,
        is_last: bool = False,
    ) -> None:
        replies = await self._ask(headers, messages)
        if replies is None:
            await _together(self._sign(headers, [each], signed, is_last=is_last) for each in messages)
            return
        passing = [each for each, reply in replies.items() if reply.status in _PASSING and not is_last]
        self._take({each: reply for each, reply in replies.items() if each not in passing}, signed)
        if passing:
            await self._sign(headers, passing, signed, is_last=True)

    async def _ask(self, headers: Mapping[str, str], messages: Sequence[bytes]) -> dict[bytes, Reply] | None:
        """Return the answers, none if Google is to be left alone; or None: there are no batches."""
        if len(messages) > 1 and not self._has_batches():
            return None
        async with (self._batches if len(messages) > 1 else self._calls).taken():
            if self._pause.left:
                return {}
            if len(messages) == 1:
                return {messages[0]: await self._ask_for_one(headers, messages[0])}
            replies = await self._ask_at_once(headers, messages)
        return None if replies is None else dict(zip(messages, replies, strict=True))

    async def _ask_at_once(self, headers: Mapping[str, str], messages: Sequence[bytes]) -> list[Reply] | None:
        """Return the answers to a batch, or None where there are no batches."""
        bodies = [self._body(message) for message in messages]
        reply = await self._call(batch_request(f"{self._url}/batch", headers, self._path, bodies))
        if reply.status in _NO_BATCHES:
            log.warning("no batches at the endpoint of signBlob, so that files are signed call by call")
            self._unbatched_at = self._clock()
            return None
        if reply.status != _OK:
            return [reply] * len(messages)
        try:
            return read_batch(reply, len(messages))
        except ValueError as exc:
            raise _nonsense(str(exc)) from None

    async def _ask_for_one(self, headers: Mapping[str, str], message: bytes) -> Reply:
        return await self._call(
            Request(
                method="POST",
                url=f"{self._url}{self._path}",
                headers={**headers, "Content-Type": "application/json"},
                body=self._body(message),
            )
        )

    @property
    def _path(self) -> str:
        return f"/v1/{_resource(self.account.email)}:signBlob"

    def _body(self, message: bytes) -> bytes:
        fields: dict[str, object] = {"payload": base64.b64encode(message).decode()}
        if self.account.delegates:
            fields["delegates"] = [_resource(email) for email in self.account.delegates]
        return json.dumps(fields).encode()

    def _take(self, replies: Mapping[bytes, Reply], signed: dict[bytes, bytes]) -> None:
        """Add the signatures that were given, and then see to the other answers."""
        found = {message: _signature(reply) for message, reply in replies.items()}
        signed |= {message: signature for message, signature in found.items() if signature}
        for message, reply in replies.items():
            if not found[message]:
                self._heed(reply)

    def _heed(self, reply: Reply) -> None:
        """Leave Google alone where it asks for that; raise for all else that is no signature."""
        if reply.status == _OK:
            raise _nonsense("signBlob answered without a signature")
        word = _word(reply)
        is_busy = reply.is_throttling or word == _EXHAUSTED
        # Once for a pause: of a thousand files, each may be refused.
        if not (is_busy and self._pause.left):
            log.warning("signBlob as %s was refused: %d %s", self.account.email, reply.status, word)
        if not is_busy:
            raise Unavailable("the storage's provider gives no signatures at the moment")
        self._pause.extend(reply.retry_after)

    def _has_batches(self) -> bool:
        passed = self._clock() - self._unbatched_at
        # A clock that was set back does not make it longer.
        return not timedelta() <= passed < _WITHOUT_BATCHES


def _signature(reply: Reply) -> bytes:
    """Return the signature that is in an answer, empty when none is."""
    found = reply.fields().get("signedBlob") if reply.status == _OK else None
    try:
        signature = base64.b64decode(found, validate=True) if isinstance(found, str) else b""
    except binascii.Error:
        return b""
    return signature if len(signature) >= _LEAST_BYTES else b""


def _resource(email: str) -> str:
    return f"projects/-/serviceAccounts/{quote(email, safe='@')}"


def _word(reply: Reply) -> str:
    """Return Google's word for a failure; its sentences may repeat what was sent."""
    error = reply.fields().get("error")
    word = error.get("status") if isinstance(error, dict) else None
    return word if isinstance(word, str) and _WORD.fullmatch(word) else "no code"


async def _together(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do it all at once; the first failure ends the others."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _nonsense(reason: str) -> Unavailable:
    log.error("no URL was signed: %s", reason)
    return Unavailable("the storage's provider gave no usable signatures")
