"""Buckets that several processes on one machine share, in memory that they inherit."""

from __future__ import annotations

import fcntl
import mmap
import os
import tempfile
from datetime import timedelta
from hashlib import blake2b
from math import inf
from struct import Struct
from typing import Final

from gateway.domain.rate import Bucket, Rate, take
from gateway.ports import Clock

# Whose bucket it is, its tokens, and when they were counted.
_SLOT: Final = Struct("=16sdd")
_FREE: Final = bytes(16)
_WAYS: Final = 32
_SET_BYTES: Final = _WAYS * _SLOT.size
# With the ways, room for far more recipients than a process remembers.
_SETS: Final = 2048


def new_memory() -> int:
    """Return a file descriptor of empty memory, which only those who inherit it can reach."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("sluice-rates")
    # Where there is no such thing, a file without a name.
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class SharedBuckets:
    """A table of sets of slots. A recipient's bucket lies in one set, under a hash of its name.

    A set is locked for the microseconds that taking a token needs; the kernel unlocks it when a process dies.
    In a full set the bucket that was not used for longest makes room: a forgotten bucket is a full one.
    """

    def __init__(self, descriptor: int, clock: Clock, *, sets: int = _SETS) -> None:
        os.ftruncate(descriptor, sets * _SET_BYTES)
        self._descriptor = descriptor
        self._memory = mmap.mmap(descriptor, sets * _SET_BYTES)
        self._clock = clock
        self._sets = sets

    def take(self, principal: str, rate: Rate) -> timedelta | None:
        owner = blake2b(principal.encode(), digest_size=len(_FREE)).digest()
        number = int.from_bytes(owner[:8], "little") % self._sets
        # Of the process and not of the open file, which all who inherited it have in common.
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX, 1, number)
        try:
            start, bucket = self._find(owner, number * _SET_BYTES)
            # Not before the lock is held: a time that is older than the bucket's would be counted twice.
            bucket, wait = take(bucket, rate, self._clock().timestamp())
            self._memory[start : start + _SLOT.size] = _SLOT.pack(owner, *bucket)
        finally:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, number)
        return wait

    def close(self) -> None:
        self._memory.close()
        os.close(self._descriptor)

    def _find(self, owner: bytes, begin: int) -> tuple[int, Bucket | None]:
        """Return where in its set an owner's bucket is, or shall be."""
        oldest, oldest_at = begin, inf
        content = self._memory[begin : begin + _SET_BYTES]
        for number, (found, tokens, filled_at) in enumerate(_SLOT.iter_unpack(content)):
            start = begin + number * _SLOT.size
            if found == owner:
                return start, Bucket(tokens, filled_at)
            # A slot is never freed again, so nobody's bucket lies behind a free one.
            if found == _FREE:
                return start, None
            if filled_at < oldest_at:
                oldest, oldest_at = start, filled_at
        return oldest, None
