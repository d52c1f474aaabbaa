"""Redis as the store that replicas share: whatever goes wrong with it is a miss."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, Final, Self, TypeVar

from redis import exceptions as failures

from gateway.adapters.cache import scripts
from gateway.adapters.cache.breaker import Breaker
from gateway.adapters.cache.finds import Finds
from gateway.adapters.cache.shared import Claim, ClaimState, Lease
from gateway.adapters.credential_metrics import CredentialMetrics, RedisError

# Connections are made anew with each probe, which may take a cluster more than one operation's time.
_PROBE_SECONDS: Final = 2.0
_PROBE_LIFE: Final = timedelta(seconds=10)
# More at once would wait for each other in Redis all the same.
_MOST_AT_ONCE: Final = 32
_DROPPED_AT_ONCE: Final = 500

# The first that fits says why.
_REASONS: Final[Sequence[tuple[type[Exception], RedisError]]] = (
    (failures.BusyLoadingError, RedisError.LOADING),
    (failures.AuthenticationError, RedisError.AUTHENTICATION),
    (failures.AuthenticationWrongNumberOfArgsError, RedisError.AUTHENTICATION),
    (failures.AuthorizationError, RedisError.AUTHENTICATION),
    (failures.NoPermissionError, RedisError.AUTHENTICATION),
    (failures.ReadOnlyError, RedisError.READ_ONLY),
    (failures.OutOfMemoryError, RedisError.FULL),
    (failures.ClusterError, RedisError.CLUSTER),
    (failures.RedisClusterException, RedisError.CLUSTER),
    (failures.TimeoutError, RedisError.TIMEOUT),
    (TimeoutError, RedisError.TIMEOUT),
    (failures.ConnectionError, RedisError.CONNECTION),
    # Whoever answers does not speak its protocol.
    (failures.InvalidResponse, RedisError.CONNECTION),
)
# What the client foresees: it has let go of the connection where that was to blame.
_FORESEEN: Final = (failures.RedisError, failures.RedisClusterException, OSError, TimeoutError)
# What one key or one value may bring about: no reason to leave Redis alone.
_HARMLESS: Final = frozenset({RedisError.FULL, RedisError.RESPONSE})
# What a claim answers where there is no value.
_STATES: Final = {1: ClaimState.MINE, 0: ClaimState.TAKEN}
# Marks of errors that a script passes on as text.
_MARKS: Final = {
    "OOM": RedisError.FULL,
    "READONLY": RedisError.READ_ONLY,
    "NOAUTH": RedisError.AUTHENTICATION,
    "NOPERM": RedisError.AUTHENTICATION,
    "MASTERDOWN": RedisError.CLUSTER,
    "CLUSTERDOWN": RedisError.CLUSTER,
}

T = TypeVar("T")
# A redis.asyncio client of any kind: standalone, through sentinels, or of a cluster.
Client = Any


class RedisCache:
    """Is the port ``SharedCache`` while its block is entered."""

    def __init__(
        self,
        client: Client,
        metrics: CredentialMetrics,
        *,
        key_prefix: str,
        timeout: timedelta,
        start_timeout: timedelta,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._metrics = metrics
        self._prefix = key_prefix
        # Connecting may come before the operation, and each has its own time-out.
        self._longest = 2 * timeout.total_seconds()
        self._start_timeout = start_timeout
        self._room = asyncio.Semaphore(_MOST_AT_ONCE)
        self._breaker = Breaker(self._probe, metrics, sleep=sleep)
        self._finds = Finds(self._find)

    async def __aenter__(self) -> Self:
        await self._breaker.start(self._start_timeout.total_seconds())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._finds.close()
        await self._breaker.close()

    async def find(self, names: Sequence[str]) -> Sequence[bytes | None] | None:
        return await self._finds.find(names)

    async def put(self, name: str, value: bytes, life: timedelta) -> bool:
        done = await self._guarded(lambda: self._client.set(self._value(name), value, px=_milliseconds(life)))
        return bool(done)

    async def claim(self, lease: Lease, life: timedelta) -> Claim:
        result = await self._eval(
            scripts.CLAIM, self._both(lease.name), lease.token, _milliseconds(life), lease.seen
        )
        if isinstance(result, bytes):
            return Claim(ClaimState.FOUND, result)
        if isinstance(result, int) and result in _STATES:
            return Claim(_STATES[result])
        if result is not None:
            self._fail(RedisError.RESPONSE)
        return Claim(ClaimState.OUT)

    async def renew(self, lease: Lease, life: timedelta) -> None:
        await self._eval(scripts.RENEW, [self._lease(lease.name)], lease.token, _milliseconds(life))

    async def publish(self, lease: Lease, value: bytes, life: timedelta) -> bool:
        keys = self._both(lease.name)
        done = await self._eval(scripts.PUBLISH, keys, lease.token, _milliseconds(life), lease.seen, value)
        return done == 1

    async def release(self, lease: Lease) -> None:
        await self._eval(scripts.RELEASE, [self._lease(lease.name)], lease.token)

    async def enlist(self, index: str, name: str, life: timedelta) -> None:
        await self._eval(scripts.ENLIST, [self._index(index)], name, _milliseconds(life))

    async def drop(self, index: str) -> int | None:
        key = self._index(index)
        listed = await self._guarded(lambda: self._client.zrange(key, 0, -1))
        if listed is None:
            return None
        if not _is_list_of_names(listed):
            self._fail(RedisError.RESPONSE)
            return None
        for start in range(0, len(listed), _DROPPED_AT_ONCE):
            part = listed[start : start + _DROPPED_AT_ONCE]
            if await self._guarded(partial(self._remove, key, part)) is None:
                return None
        return len(listed)

    async def _find(self, names: Sequence[str]) -> Sequence[bytes | None] | None:
        async def get() -> list[bytes | None]:
            pipeline = self._client.pipeline(transaction=False)
            for name in names:
                pipeline.get(self._value(name))
            found = await pipeline.execute(raise_on_error=False)
            return [_value_or_none(value) for value in found]

        return await self._guarded(get)

    async def _remove(self, index: str, names: Sequence[bytes]) -> bool:
        pipeline = self._client.pipeline(transaction=False)
        for name in names:
            # Ours are ASCII; another's is taken off the list all the same.
            for key in self._both(name.decode(errors="replace")):
                pipeline.delete(key)
        await pipeline.execute()
        # Not the whole list: somebody may have put a name on it meanwhile.
        await self._client.zrem(index, *names)
        return True

    async def _eval(self, script: str, keys: Sequence[str], *arguments: bytes | str | int) -> object:
        return await self._guarded(lambda: self._client.eval(script, len(keys), *keys, *arguments))

    async def _guarded(self, operation: Callable[[], Awaitable[T]]) -> T | None:
        """Return what an operation gives, or None when it fails or Redis is left alone."""
        async with self._room:
            if self._breaker.is_open:
                return None
            try:
                async with asyncio.timeout(self._longest):
                    result = await operation()
            except Exception as exc:  # noqa: BLE001 -- the client raises anything when it reads nonsense
                self._fail(reason_of(exc))
                if not isinstance(exc, _FORESEEN):
                    await self._disconnect()
                return None
        self._breaker.succeed()
        return result

    def _fail(self, reason: RedisError) -> None:
        self._metrics.count_redis_error(reason)
        if reason not in _HARMLESS:
            self._breaker.fail(reason)

    async def _probe(self) -> RedisError | None:
        """Return why Redis cannot be used, or None: it must take a value, not just a connection."""
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                await self._client.set(f"{self._prefix}probe", b"1", px=_milliseconds(_PROBE_LIFE))
        except Exception as exc:  # noqa: BLE001 -- as above; and nobody would probe again
            reason = reason_of(exc)
            if reason is RedisError.FULL:
                # It can still be read.
                return None
            await self._disconnect()
            return reason
        return None

    async def _disconnect(self) -> None:
        """Let go of connections: a name may lead to another server by now, or answers be out of step."""
        pool = getattr(self._client, "connection_pool", None)
        if pool is None:
            return
        with suppress(Exception):
            await pool.disconnect(inuse_connections=False)

    def _value(self, name: str) -> str:
        return f"{self._prefix}{{{name}}}:v"

    def _lease(self, name: str) -> str:
        return f"{self._prefix}{{{name}}}:l"

    def _index(self, name: str) -> str:
        return f"{self._prefix}{{{name}}}:i"

    def _both(self, name: str) -> list[str]:
        return [self._value(name), self._lease(name)]


def reason_of(exc: Exception) -> RedisError:
    """Return the word for a failure; its own words may hold addresses and names."""
    for type_, reason in _REASONS:
        if isinstance(exc, type_):
            return reason
    if not isinstance(exc, failures.RedisError):
        # Before its words are looked at, which may be a server's own.
        return RedisError.CONNECTION
    return next((reason for mark, reason in _MARKS.items() if mark in str(exc)), RedisError.RESPONSE)


def _value_or_none(value: object) -> bytes | None:
    """Return a value, or None for one that is of another type; raise what concerns more than the one key."""
    if isinstance(value, Exception):
        if reason_of(value) in _HARMLESS:
            return None
        raise value
    return value if isinstance(value, bytes) else None


def _is_list_of_names(listed: object) -> bool:
    return isinstance(listed, list) and all(isinstance(name, bytes) for name in listed)


def _milliseconds(span: timedelta) -> int:
    return max(1, int(span.total_seconds() * 1000))
