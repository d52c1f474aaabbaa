"""A worker: one of several processes that serve the same sockets and share what must be the same for all."""

from __future__ import annotations

import signal
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from gateway.adapters.shared_rate import SharedBuckets
from gateway.adapters.worker_link import reporting
from gateway.bootstrap.given import Given


@dataclass(frozen=True, slots=True, kw_only=True)
class Inheritance:
    """The file descriptors that a worker finds open when it starts."""

    http: tuple[int, ...]
    buckets: int
    link: int

    @classmethod
    def from_argument(cls, text: str) -> Inheritance:
        """Read what ``to_argument`` wrote; raise ``ValueError`` for anything else."""
        buckets, link, *http = (int(number) for number in text.split(","))
        return cls(http=tuple(http), buckets=buckets, link=link)

    def to_argument(self) -> str:
        return ",".join(str(number) for number in self.descriptors)

    @property
    def descriptors(self) -> tuple[int, ...]:
        return (self.buckets, self.link, *self.http)

    def take_over(self) -> Given:
        """Return what they stand for. A supervisor that is gone is as good as one that asks for an end."""
        link = socket.socket(fileno=self.link)
        return Given(
            http_sockets=tuple(socket.socket(fileno=number) for number in self.http),
            buckets=SharedBuckets(self.buckets, lambda: datetime.now(UTC)),
            operations=partial(reporting, link, lambda: signal.raise_signal(signal.SIGTERM)),
        )
