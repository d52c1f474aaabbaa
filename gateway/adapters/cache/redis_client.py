"""A client for the Redis that the configuration names: one server, sentinels, or a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from redis.asyncio import Redis, RedisCluster, Sentinel
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import SentinelConnectionPool
from redis.backoff import NoBackoff

from gateway.config.address import parse_tcp
from gateway.config.redis import RedisConfig, RedisTlsConfig, SentinelConfig

_PORT: Final = 6379
_CLUSTER_RETRIES: Final = 2


@asynccontextmanager
async def redis_client(config: RedisConfig) -> AsyncIterator[Any]:
    """Return a client that has not connected yet; close it and what it found its server by."""
    async with AsyncExitStack() as stack:
        if config.sentinel is None:
            client = _direct(config)
        else:
            manager = _sentinels(config, config.sentinel)
            for sentinel in manager.sentinels:
                stack.push_async_callback(_close, sentinel)
            arguments = {**_connection(config), **_sentinel_tls(config)}
            pool = SentinelConnectionPool(  # type: ignore[no-untyped-call]
                config.sentinel.service, manager, **arguments
            )
            client = Redis.from_pool(pool)
        stack.push_async_callback(_close, client)
        yield client


async def _close(client: Any) -> None:
    # What goes wrong with a connection that is given up concerns nobody.
    with suppress(Exception):
        await client.aclose()


def _direct(config: RedisConfig) -> Any:
    parts = urlsplit(config.url)
    if parts.scheme == "unix":
        return Redis(unix_socket_path=unquote(parts.path), **_connection(config))
    place: dict[str, Any] = {"host": parts.hostname, "port": parts.port or _PORT}
    if parts.scheme == "rediss":
        place |= _tls(config.tls or RedisTlsConfig())
    if config.cluster:
        # A slot that nobody serves is a miss, not a reason to do without the others.
        # When slots move, an operation is the one to find out: it may look where they have gone to.
        again = {"retry": Retry(NoBackoff(), _CLUSTER_RETRIES)}
        return RedisCluster(**place, **_connection(config) | again, require_full_coverage=False)
    return Redis(**place, db=int(parts.path.strip("/") or 0), **_connection(config))


def _sentinels(config: RedisConfig, sentinel: SentinelConfig) -> Any:
    addresses = [parse_tcp(text) for text in sentinel.addresses]
    user = _user(sentinel.username, _secret(sentinel))
    return Sentinel(  # type: ignore[no-untyped-call]
        [(address.host, address.port) for address in addresses],
        sentinel_kwargs={**_common(config), **_sentinel_tls(config), **user},
    )


def _sentinel_tls(config: RedisConfig) -> dict[str, Any]:
    return {} if config.tls is None else _tls(config.tls)


def _connection(config: RedisConfig) -> dict[str, Any]:
    return {**_common(config), **_user(config.username, _secret(config))}


def _common(config: RedisConfig) -> dict[str, Any]:
    seconds = config.timeout.total_seconds()
    return {
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds,
        # Who waits for an answer is better off without it than with a second attempt.
        "retry": Retry(NoBackoff(), 0),
        # Plain commands only, which any server and any user with few rights takes.
        "protocol": 2,
        "driver_info": None,
    }


def _user(username: str, password: str | None) -> dict[str, Any]:
    return {"username": username or None, "password": password}


def _secret(section: RedisConfig | SentinelConfig) -> str | None:
    return None if section.password is None else section.password.get_secret_value()


def _tls(tls: RedisTlsConfig) -> dict[str, Any]:
    return {
        "ssl": True,
        "ssl_ca_certs": tls.ca or None,
        "ssl_certfile": tls.certificate or None,
        "ssl_keyfile": tls.key or None,
    }
