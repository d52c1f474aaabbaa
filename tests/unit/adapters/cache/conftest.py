"""A process with a cache, and several that share one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fakes.shared_cache import FakeSharedCache
from tests.unit.adapters.cache.doubles import Provider, Replica, Time


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def provider(time) -> Provider:
    return Provider(time)


@pytest.fixture
def redis(time) -> FakeSharedCache:
    return FakeSharedCache(time.clock)


@pytest.fixture
def replica(time) -> Replica:
    """A process without a Redis."""
    return Replica(time, None)


@pytest.fixture
def new_replica(time, redis) -> Callable[..., Replica]:
    """Makes processes that share a Redis."""
    return lambda **options: Replica(time, redis, **options)
