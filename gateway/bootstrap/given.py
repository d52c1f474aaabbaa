"""What a process may be given by whoever starts it."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from prometheus_client import CollectorRegistry

from gateway.ports import RateBuckets


class Operations(Protocol):
    """Where a process' metrics and health are to be had."""

    # host:port, or empty where it is no port.
    address: str

    def drain(self) -> None:
        """Let it be known that the process takes no new requests."""


ServeOperations = Callable[
    [CollectorRegistry, Callable[[], Awaitable[Mapping[str, str]]]], AbstractAsyncContextManager[Operations]
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What is shared with others, or opened already; the process opens for itself what it is not given."""

    http_sockets: tuple[socket.socket, ...] = ()
    buckets: RateBuckets | None = None
    operations: ServeOperations | None = None
