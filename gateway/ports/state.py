"""What replicas and workers share: small things under keys, and the jobs that are kept so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from gateway.domain.job import Job, JobKey


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEntry:
    """What is kept under a key, and the tag that this content has there and no other."""

    content: bytes = field(repr=False)
    tag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateKey:
    """A key that a listing found."""

    key: str
    size: int
    modified_at: datetime


class StateStore(Protocol):
    """Small things that all replicas and workers see alike: jobs, leases, what was made and where it is.

    Keys are words joined by slashes, of letters, digits, ``.``, ``_``, ``=`` and ``-``. Whoever reads what
    was put reads all of it or nothing. Every method raises ``Unavailable`` when the store does not answer.

    What was to be put may be there all the same then, and even when the store says that something else is:
    it may have been asked twice. Whoever must know reads again, and compares.
    """

    async def get(self, key: str) -> StateEntry | None:
        """Return what is kept under a key; None when nothing is."""

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        """Return a part of what is kept under a key; None when nothing is."""

    async def create(self, key: str, content: bytes) -> str | None:
        """Keep content under a key under which nothing is, and return its tag; None when something is."""

    async def replace(self, key: str, content: bytes, tag: str) -> str | None:
        """Keep content in place of what has the tag, and return its own; None when that is not there."""

    async def delete(self, key: str) -> None:
        """Forget what is kept under a key, if anything is."""

    async def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> Sequence[StateKey]:
        """Return the first keys that begin with a prefix and sort after a key, in their order.

        The prefix is empty, or ends with a slash.
        """


class Jobs(Protocol):
    """Work that others do, for whoever wants it done. Raises ``Unavailable`` when the state cannot be had."""

    async def request(self, key: JobKey, parameters: Mapping[str, str], since: datetime) -> Job:
        """Ask for a run that begins at or after a moment, and return the job that has it or will.

        It is kept before this returns. The asker's run is over once ``done_sequence`` has reached the
        ``sequence`` of the job that is returned; ``FAILED`` with that sequence or a later one: it failed.
        """

    async def find(self, key: JobKey) -> Job | None:
        """Return the job as it is now; None when nobody has ever asked for it."""
