"""Signatures that a process keeps: of segments as a whole, or file by file where each one is dear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeAlias
from weakref import WeakValueDictionary

from gateway.adapters.cache.promise import least_left
from gateway.domain.file_path import Paths
from gateway.domain.kept import Kept
from gateway.domain.location import Location
from gateway.domain.window import EPOCH, Window
from gateway.ports import Signatures

# What Python's objects take besides the texts, by measurement and rounded up.
_PAGE_BYTES: Final = 400
_FILE_BYTES: Final = 170
# So much of the memory a table may have at the cost of what was used longest ago.
_PARTS: Final = 4
# It may have more where that is free, but for this part: else each first file of another would push one out.
_SPARE_PARTS: Final = 8


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
    """Each file by itself, so that it is signed once, whatever others it is asked for with.

    Of a table with more files than there is room for, those that came first stay. It is read from end to end,
    again and again: the last ones would push out the first just before they are needed.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        # Those of this storage that the memory still has.
        self._groups: WeakValueDictionary[bytes, Group] = WeakValueDictionary()
        self._now = EPOCH

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
            group = Group(replace(signatures, signatures=b""), asked.window)
        files = zip(asked.paths.split(), signatures.signatures.split(b"\n"), strict=True)
        lacking = {path: signature for path, signature in files if path not in group.signatures}
        group.add(lacking, self._make_room(group, sum(map(_file_size, lacking.items()))))
        self._memory.keep(asked.place, group, group.size)
        self._groups[asked.place] = group

    def _find(self, asked: Asked, least: timedelta, now: datetime) -> Group | None:
        self._now = now
        group = self._memory.find(asked.place)
        return group if isinstance(group, Group) and group.common.expires_at - now >= least else None

    def _make_room(self, group: Group, size: int) -> int:
        """Return by how much a group may grow, with what others give back."""
        capacity = self._memory.capacity
        share, spare = capacity // _PARTS, capacity // _SPARE_PARTS
        # No more than it takes: in need, the window before is still of use.
        wanted = size if group.size + size <= share else size + spare
        if self._free < wanted:
            self._give_up_past(group, wanted)
        if (due := min(size, share - group.size)) > 0:
            self._take_back(due, share)
        return max(share - group.size, self._free - spare)

    def _give_up_past(self, but: Group, size: int) -> None:
        """Let go of windows that have ended, until so much is free."""
        groups = ((place, group) for place, group in self._groups.items() if group is not but)
        past = [(group.window.end, place) for place, group in groups if group.window.end <= self._now]
        for _, place in sorted(past):
            if self._free >= size:
                return
            # What can never fit is not kept, and neither is what it takes the place of.
            self._memory.keep(place, self._groups[place], self._memory.capacity + 1)

    def _take_back(self, size: int, share: int) -> None:
        """Take what others have beyond their share, until so much is free."""
        for place, group in list(self._groups.items()):
            if self._free >= size:
                return
            if group.size > share:
                group.trim(max(share, group.size - (size - self._free)))
                self._memory.keep(place, group, group.size)

    @property
    def _free(self) -> int:
        return self._memory.capacity - self._memory.size


class Group:
    """The files below one location in one window."""

    def __init__(self, common: Signatures, window: Window) -> None:
        self.common = common
        self.window = window
        self.signatures: dict[bytes, bytes] = {}
        self.size = _PAGE_BYTES + _texts(common)

    def add(self, files: Mapping[bytes, bytes], room: int) -> None:
        """Add files that are not among them, in their order, for as long as there is room."""
        most = self.size + room
        for file in files.items():
            if self.size + _file_size(file) > most:
                return
            self.size += _file_size(file)
            self.signatures[file[0]] = file[1]

    def trim(self, size: int) -> None:
        """Let go of those that came last, until the others fit."""
        while self.size > size and self.signatures:
            self.size -= _file_size(self.signatures.popitem())


# Segments by their keys, groups by their places.
Memory: TypeAlias = Kept[bytes, Signatures | Group]


def _file_size(file: tuple[bytes, bytes]) -> int:
    path, signature = file
    return len(path) + len(signature) + _FILE_BYTES


def _texts(signatures: Signatures) -> int:
    return len(signatures.origin) + len(signatures.query)


def _go_together(one: Signatures, other: Signatures) -> bool:
    return (one.origin, one.query, one.expires_at) == (other.origin, other.query, other.expires_at)
