"""The cache: one way to Redis, and none by which its password could be read on the way unnoticed."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final
from urllib.parse import SplitResult, urlsplit

from gateway.config.address import is_host, is_loopback, parse_tcp
from gateway.config.checks.file import check_file
from gateway.config.path import Path
from gateway.config.redis import RedisConfig, RedisTlsConfig, UrlCacheConfig, UrlsInRedis
from gateway.config.report import Report
from gateway.config.schema import Config

_PATH: Final[Path] = ("cache", "redis")
_URL: Final = (
    "must be redis://host:port/database, rediss://host:port/database with TLS, or unix:///path of a socket"
)
_NO_TLS: Final = "has no TLS: the password of Redis can be read on the way; {fix}"
# No braces, which are the hash tag's, and nothing that a pattern of an access rule gives a meaning.
_KEY_PREFIX: Final = re.compile(r"[A-Za-z0-9_.:/-]*")
_DATABASE: Final = re.compile(r"/?[0-9]{0,4}")
_LONGEST_TIMEOUT: Final = timedelta(seconds=5)
_SHORTEST_LEASE, _LONGEST_LEASE = timedelta(seconds=1), timedelta(minutes=1)


def check_cache(config: Config, report: Report) -> None:
    redis = config.cache.redis
    if not report.is_intact(_PATH):
        return
    if redis is None:
        _check_urls(config.cache.urls, report)
        return
    _check_way(redis, report)
    if redis.sentinel is not None:
        _check_sentinels(redis.sentinel.addresses, report, has_tls=redis.tls is not None)
    if redis.tls is not None:
        _check_tls(redis.tls, report)
    _check_bounds(redis, report)


def _check_urls(urls: UrlCacheConfig, report: Report) -> None:
    if urls.redis is UrlsInRedis.ALWAYS:
        report.warn(("cache", "urls", "redis"), "has no effect: there is no cache.redis")


def _check_way(redis: RedisConfig, report: Report) -> None:
    if bool(redis.url) == (redis.sentinel is not None):
        report.fault(_PATH, "needs either url or sentinel")
    elif redis.url:
        _check_url(redis, report)
    elif redis.cluster:
        report.fault((*_PATH, "cluster"), "has no sentinels: give the url of one of its nodes")
    if redis.username and redis.password is None:
        report.fault((*_PATH, "username"), "needs a password beside it")


def _check_url(redis: RedisConfig, report: Report) -> None:
    path: Path = (*_PATH, "url")
    parts = _split(redis.url)
    if parts is not None and "@" in parts.netloc:
        # The URL is written to logs; what it holds would be, too.
        report.fault(path, "must not have a user or password; set cache.redis.username and .password")
    elif parts is None or parts.query or parts.fragment or not _is_way(parts):
        report.fault(path, _URL, redis.url)
    elif redis.cluster and (parts.scheme == "unix" or parts.path not in {"", "/", "/0"}):
        report.fault(path, "must name a host and no database: a cluster has one only", redis.url)
    elif redis.tls is not None and parts.scheme != "rediss":
        report.fault((*_PATH, "tls"), "needs a rediss:// URL")
    elif parts.scheme == "redis" and not is_loopback(parts.hostname or ""):
        # Values are sealed, so that this is no reason to refuse; names of users and passwords are not.
        report.warn(path, _NO_TLS.format(fix="use rediss://"))


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        # Reading the port is what checks it.
        return parts if url.isprintable() and parts.port != 0 else None
    except ValueError:
        return None


def _is_way(parts: SplitResult) -> bool:
    if parts.scheme == "unix":
        return not parts.netloc and parts.path.startswith("/") and len(parts.path) > 1
    is_address = is_host(parts.hostname or "") and _DATABASE.fullmatch(parts.path) is not None
    return parts.scheme in {"redis", "rediss"} and is_address


def _check_sentinels(addresses: tuple[str, ...], report: Report, *, has_tls: bool) -> None:
    path: Path = (*_PATH, "sentinel", "addresses")
    if not addresses:
        report.fault(path, "must name at least one sentinel by host:port")
    for number, text in enumerate(addresses):
        try:
            address = parse_tcp(text)
        except ValueError as exc:
            report.fault((*path, number), str(exc), text)
            continue
        if not has_tls and not address.is_private:
            report.warn((*path, number), _NO_TLS.format(fix="set cache.redis.tls"))


def _check_tls(tls: RedisTlsConfig, report: Report) -> None:
    for key, file in (("ca", tls.ca), ("certificate", tls.certificate), ("key", tls.key)):
        if file:
            check_file(file, (*_PATH, "tls", key), report)
    if bool(tls.certificate) != bool(tls.key):
        report.fault((*_PATH, "tls"), "needs both certificate and key, or neither")


def _check_bounds(redis: RedisConfig, report: Report) -> None:
    if not _KEY_PREFIX.fullmatch(redis.key_prefix):
        report.fault((*_PATH, "keyPrefix"), "must be of letters, digits and _.:/- only", redis.key_prefix)
    if redis.timeout > _LONGEST_TIMEOUT:
        report.fault((*_PATH, "timeout"), "must be at most 5s: requests wait for it")
    if not _SHORTEST_LEASE <= redis.lease_time <= _LONGEST_LEASE:
        report.fault((*_PATH, "leaseTime"), "must be from 1s to 1m")
