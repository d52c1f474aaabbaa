"""Signatures that a process keeps: of segments as a whole, or file by file where each one is dear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, Protocol, TypeAlias

from gateway.adapters.cache.promise import least_left
from gateway.domain.file_path import Paths
from gateway.domain.kept import Kept
from gateway.domain.location import Location
from gateway.domain.window import Window
from gateway.ports import Signatures

# What Python's objects take besides the texts, by measurement and rounded up.
_PAGE_BYTES: Final = 400
_FILE_BYTES: Final = 170
# No table may take all of the memory for itself.
_PARTS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked for, and what it is known by."""

    table: Location
    paths: Paths
    window: Window
    # All that the signatures depend on but for the paths.
    place: bytes
    # All that they depend on.
    key: bytes


@dataclass(frozen=True, slots=True)
class Known:
    """The files of a request whose signatures are known."""

    paths: Sequence[bytes] = ()
    by_path: Mapping[bytes, bytes] = field(default_factory=dict)
    # What they have in common; None where there are none.
    common: Signatures | None = None

    @property
    def lacking(self) -> Paths:
        return Paths(b"\n".join(path for path in self.paths if path not in self.by_path))

    def joined(self, signed: Signatures | None) -> Signatures | None:
        """Return the signatures of all, with those that were lacking; None if they do not go together."""
        if self.common is None or (signed is not None and not _go_together(self.common, signed)):
            return None
        found = dict(self.by_path)
        if signed is not None:
            found.update(zip(self.lacking.split(), signed.signatures.split(b"\n"), strict=True))
        return replace(self.common, signatures=b"\n".join(map(found.__getitem__, self.paths)))


class UrlMemory(Protocol):
    """Finds what may still be handed out."""

    def find(self, asked: Asked, least: timedelta, now: datetime) -> Signatures | None:
        """Return the signatures of all paths, if so much is left of their life."""

    def known(self, asked: Asked, now: datetime) -> Known:
        """Return those of some paths, where others are lacking."""

    def keep(self, asked: Asked, signatures: Signatures) -> None: ...


class Segments:
    """Each as it was asked for: to find one takes as long as its hash, however many files it has."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def find(self, asked: Asked, least: timedelta, now: datetime) -> Signatures | None:
        found = self._memory.find(asked.key)
        return found if isinstance(found, Signatures) and found.expires_at - now >= least else None

    def known(self, asked: Asked, now: datetime) -> Known:
        return Known()

    def keep(self, asked: Asked, signatures: Signatures) -> None:
        size = _texts(signatures) + len(asked.key) + len(signatures.signatures)
        self._memory.keep(asked.key, signatures, _PAGE_BYTES + size)


class Files:
    """Each file by itself, so that it is signed once, whatever others it is asked for with."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def find(self, asked: Asked, least: timedelta, now: datetime) -> Signatures | None:
        group = self._find(asked, least, now)
        if group is None:
            return None
        found = list(map(group.signatures.get, asked.paths.split()))
        known = [signature for signature in found if signature is not None]
        return replace(group.common, signatures=b"\n".join(known)) if len(known) == len(found) else None

    def known(self, asked: Asked, now: datetime) -> Known:
        group = self._find(asked, least_left(asked.window), now)
        if group is None:
            return Known()
        paths = asked.paths.split()
        by_path = {path: group.signatures[path] for path in paths if path in group.signatures}
        return Known(paths, by_path, group.common)

    def keep(self, asked: Asked, signatures: Signatures) -> None:
        group = self._memory.find(asked.place)
        if not isinstance(group, Group) or not _go_together(group.common, signatures):
            group = Group(replace(signatures, signatures=b""))
        group.add(asked.paths, signatures.signatures)
        group.trim(self._memory.capacity // _PARTS)
        self._memory.keep(asked.place, group, _PAGE_BYTES + _texts(group.common) + group.size)

    def _find(self, asked: Asked, least: timedelta, now: datetime) -> Group | None:
        group = self._memory.find(asked.place)
        return group if isinstance(group, Group) and group.common.expires_at - now >= least else None


class Group:
    """The files below one location in one window."""

    def __init__(self, common: Signatures) -> None:
        self.common = common
        self.signatures: dict[bytes, bytes] = {}
        self.size = 0

    def add(self, paths: Paths, joined: bytes) -> None:
        before = len(self.signatures)
        self.signatures.update(zip(paths.split(), joined.split(b"\n"), strict=True))
        each = (len(paths.joined) + len(joined)) // len(paths) + _FILE_BYTES
        self.size += each * (len(self.signatures) - before)

    def trim(self, size: int) -> None:
        """Let go of those that came first, if all do not fit: half of them, so that it is seldom done."""
        while self.size > size and self.signatures:
            count = len(self.signatures)
            self.signatures = dict(islice(self.signatures.items(), count - count // 2, None))
            self.size = self.size * len(self.signatures) // count


# Segments by their keys, groups by their places.
Memory: TypeAlias = Kept[bytes, Signatures | Group]


def _texts(signatures: Signatures) -> int:
    return len(signatures.origin) + len(signatures.query)


def _go_together(one: Signatures, other: Signatures) -> bool:
    return (one.origin, one.query, one.expires_at) == (other.origin, other.query, other.expires_at)
