"""The ``cache`` section: how much a process remembers, and the Redis that replicas share."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from pydantic import Field, SecretStr

from gateway.config.section import Room, Section, Size, Span


class RedisTlsConfig(Section):
    """TLS to Redis; paths of PEM files. Left out of a ``rediss`` URL: the system's authorities."""

    ca: str = ""
    # A client's own certificate, where Redis asks for one.
    certificate: str = ""
    key: str = ""


class SentinelConfig(Section):
    """Sentinels that know which Redis is the primary."""

    # host:port of each.
    addresses: tuple[str, ...]
    # The name that they know the primary by.
    service: str = Field(min_length=1)
    # Their own user, which is not the one of Redis.
    username: str = ""
    password: SecretStr | None = None


class RedisConfig(Section):
    # redis://host:port/database, rediss:// with TLS, or unix:///path; without a password.
    url: str = ""
    username: str = ""
    password: SecretStr | None = None
    sentinel: SentinelConfig | None = None
    # Whether the URL names a node of a Redis Cluster.
    cluster: bool = False
    tls: RedisTlsConfig | None = None
    # How long one operation may take, and how long connecting may, before we do without.
    timeout: Span = timedelta(milliseconds=100)
    # What all our keys begin with.
    key_prefix: str = Field(default="sluice:", max_length=64)
    # What a replica that dies while it mints costs those who wait for it.
    lease_time: Span = timedelta(seconds=5)


class UrlsInRedis(StrEnum):
    """Which signatures of URLs replicas share."""

    # Those that are found there for less than it costs to sign again.
    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class UrlCacheConfig(Section):
    # How much memory the signatures kept in a process may take; 0: none are kept.
    memory: Room = 128 * 1024 * 1024
    redis: UrlsInRedis = UrlsInRedis.AUTO


class CacheConfig(Section):
    # How much memory the credentials kept in a process may take.
    memory: Size = 64 * 1024 * 1024
    urls: UrlCacheConfig = UrlCacheConfig()
    redis: RedisConfig | None = None
