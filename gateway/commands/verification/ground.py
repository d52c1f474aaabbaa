"""Where a credential is tried: a directory that it is for, and objects beside it that are really there."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from gateway.commands.verification.hands import Hands
from gateway.domain.credential import Credential
from gateway.domain.location import Location
from gateway.domain.probe import Action, Attempt, Verdict
from gateway.errors import GatewayError

SIBLING: Final = "sibling by name"
NEIGHBOUR: Final = "neighbour"
BESIDE: Final = "object beside"
BARE: Final = "bare key"
CASE: Final = "case variant"

# Where probe objects are written.
PROBES: Final = "_sluice_verify"

_LOG: Final = "_delta_log/"
# Of tables of one kind, which may be many; what the operator names is tried all.
MOST_TRIED: Final = 5
_STATUS_DIGITS: Final = 3
# Some stores must open it, or Hadoop takes the directory for forbidden.
_BARE_IS_OPEN: Final = "it also opens an object with the very name of its directory, if there is one"
_CASE_IS_FOLDED: Final = (
    "it also opens directories that differ by upper and lower case only, which acceptCaseVariants accepts"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """An object that exists and that the credential must not open."""

    # How it lies to the directory, and what it is called in the report: its directory's name if left out.
    kind: str
    at: Location
    path: str
    label: str = ""
    # Whether it lies in a directory of its own, which must not be listed either.
    has_directory: bool = True
    # What to note if it is open nevertheless, where that is known and accepted.
    tolerated: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A kind of object that could not be found, and what to do about it."""

    kind: str
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    # What it is made of, for the report.
    kind: str
    inside: Location
    credential: Credential
    # Of an object in it; empty when none could be found.
    path: str
    outside: Sequence[Outside]
    gaps: Sequence[Gap] = ()
    # How many tables there are besides, which were not tried.
    untried: int = 0
    # Whether the object inside is ours to overwrite.
    is_ours: bool = False


class ProbeObjects:
    """Objects of our own below ``_sluice_verify/`` and a random name, written and removed again."""

    def __init__(self, hands: Hands, prefix: Location, *, folds_case: bool) -> None:
        self._hands = hands
        self._folds_case = folds_case
        self._base = prefix.child(PROBES).child(secrets.token_hex(8))
        self._prefix = prefix
        self._is_first = False
        self._written: list[_Written] = []

    async def write_first(self) -> tuple[Verdict, str]:
        """Write the object inside: what becomes of it tells whether the rest can be written."""
        self._is_first = await self._look(self._prefix, PROBES) is Verdict.MISSING
        return await self._write(self._base.child("probe"), "inside.txt")

    async def prepare(self, named: Sequence[Location]) -> Ground:
        """Write the rest, find objects in the named directories, and issue a credential for the own one."""
        inside = self._base.child("probe")
        outside, gaps = [], []
        for one in self._wanted():
            verdict, said = await self._write(one.at, one.path)
            if verdict is Verdict.ALLOWED:
                outside.append(one)
            elif one.kind != BARE:
                # Some stores keep no object under the name of a directory: there is none to open, then.
                gaps.append(Gap(kind=one.kind, advice=f"the probe object could not be written ({said})"))
        # Behind our own: what is tried in the first one only, as writing is, does not touch theirs.
        found, missing = await Finder(self._hands, inside).find_named(named)
        return Ground(
            kind="probe objects",
            inside=inside,
            credential=await self._hands.issue(inside),
            path="inside.txt",
            outside=[*outside, *found],
            gaps=[*gaps, *missing],
            is_ours=True,
        )

    def _wanted(self) -> Iterator[Outside]:
        name = "outside.txt"
        yield Outside(kind=SIBLING, at=self._base.child("probe-sibling"), path=name)
        yield Outside(kind=SIBLING, at=self._base.child("probe2"), path=name)
        accepted = _CASE_IS_FOLDED if self._folds_case else ""
        yield Outside(kind=CASE, at=self._base.child("PROBE"), path=name, tolerated=accepted)
        yield Outside(kind=NEIGHBOUR, at=self._base.child("neighbour"), path=name)
        yield Outside(kind=BESIDE, at=self._base, path="probe.txt", has_directory=False)
        yield Outside(kind=BARE, at=self._base, path="probe", has_directory=False, tolerated=_BARE_IS_OPEN)

    async def remove(self) -> list[str]:
        """Remove what was written, and return what could not be and is there, or may be."""
        left = []
        for one in reversed(self._written):
            attempt = await self._hands.attempt(None, Action.DELETE, one.at, one.path)
            if attempt.verdict in {Verdict.ALLOWED, Verdict.MISSING}:
                continue
            # A store that has not answered once has most likely never heard of it.
            if one.is_certain or one.was_answered or _status_of(attempt):
                left.append(f"{one.at}/{one.path}")
        return left + await self._remove_directories()

    async def _remove_directories(self) -> list[str]:
        """Remove what a store with real directories has made of their names, and return what it kept."""
        places = {one.at for one in self._written if one.is_certain and one.at != self._base}
        directories = [*sorted(places, key=str), self._base]
        # What was there before us is not ours.
        directories += [self._prefix.child(PROBES)] if self._is_first else []
        left = []
        for one in directories if self._written else ():
            name = one.path.rpartition("/")[2]
            if await self._look(one.parent, name) is not Verdict.ALLOWED:
                continue
            attempt = await self._hands.attempt(None, Action.DELETE, one.parent, name)
            if attempt.verdict not in {Verdict.ALLOWED, Verdict.MISSING}:
                left.append(str(one))
        return left

    async def _look(self, at: Location, path: str) -> Verdict:
        return (await self._hands.attempt(None, Action.READ, at, path)).verdict

    async def _write(self, at: Location, path: str) -> tuple[Verdict, str]:
        attempt = await self._hands.attempt(None, Action.WRITE, at, path)
        status = _status_of(attempt)
        is_certain = attempt.verdict is Verdict.ALLOWED
        # The store's own error, or silence, may have come after it had taken the object; a refusal has not.
        if is_certain or (attempt.verdict is Verdict.FAILED and not status.startswith("4")):
            self._written.append(_Written(at, path, is_certain=is_certain, was_answered=bool(status)))
        return attempt.verdict, attempt.detail or attempt.verdict.value


@dataclass(frozen=True, slots=True)
class _Written:
    """An object that was sent to the store."""

    at: Location
    path: str
    # Whether the store said that it has it.
    is_certain: bool
    was_answered: bool


def _status_of(attempt: Attempt) -> str:
    """Return the HTTP status of the store's answer; empty where there was none."""
    first = attempt.detail.partition(" ")[0]
    return first if first.isdecimal() and len(first) == _STATUS_DIGITS else ""


class Finder:
    """Finds objects outside a directory, which are shown to be there by credentials of their own."""

    def __init__(self, hands: Hands, inside: Location) -> None:
        self._hands = hands
        self._inside = inside

    async def find_named(self, named: Sequence[Location]) -> tuple[list[Outside], list[Gap]]:
        """Return an object in each directory, or why there is none."""
        found, gaps = [], []
        for at in named:
            one = await self._find(at)
            if isinstance(one, Outside):
                found.append(replace(one, label=at.path))
            else:
                gaps.append(Gap(kind=f"outside ({at.path})", advice=one))
        return found, gaps

    async def find_tables(
        self, tables: Sequence[Location], known: Sequence[Outside]
    ) -> tuple[list[Outside], list[Gap]]:
        """Return objects in some tables of each kind; a gap for a kind of which there is none at all."""
        found: list[Outside] = []
        gaps: list[Gap] = []
        for kind, advice in _ADVICE.items():
            of_kind = [at for at in tables if kind_of(self._inside, at) == kind]
            tried = [await self._find(at) for at in of_kind[:MOST_TRIED]]
            objects = [one for one in tried if isinstance(one, Outside)]
            found += objects
            if not objects and not any(one.kind == kind for one in known):
                gaps.append(
                    Gap(kind=kind, advice=next((one for one in tried if isinstance(one, str)), advice))
                )
        return found, gaps

    async def object_in(self, credential: Credential, at: Location) -> str:
        for prefix in (_LOG, ""):
            listed = await self._hands.attempt(credential, Action.LIST, at, prefix)
            names = [name for name in listed.names if name and not name.endswith("/")]
            if names:
                return min(names)
        return ""

    async def _find(self, at: Location) -> Outside | str:
        """Return an object that its own credential reads, or why there is none."""
        try:
            credential = await self._hands.issue(at)
        except GatewayError as exc:
            return f"no credential for {at}: {exc.message}"
        path = await self.object_in(credential, at)
        if path and await self._reads(credential, at, path):
            return Outside(kind=kind_of(self._inside, at), at=at, path=path)
        return f"no object below {at} could be read with a credential of its own"

    async def _reads(self, credential: Credential, at: Location, path: str) -> bool:
        return (await self._hands.attempt(credential, Action.READ, at, path)).verdict is Verdict.ALLOWED


async def find_ground(
    hands: Hands, kind: str, inside: Location, named: Sequence[Location], tables: Sequence[Location]
) -> Ground:
    """Take directories that are there already: tables of the catalog, or what the operator names."""
    finder = Finder(hands, inside)
    credential = await hands.issue(inside)
    outside, gaps = await finder.find_named(named)
    beside = [at for at in tables if at not in named and kind_of(inside, at)]
    found, missing = await finder.find_tables(beside, outside)
    return Ground(
        kind=kind,
        inside=inside,
        credential=credential,
        path=await finder.object_in(credential, inside),
        outside=[*outside, *found],
        gaps=[*gaps, *missing],
        untried=len(beside) - len(found),
    )


def kind_of(inside: Location, other: Location) -> str:
    """Return how another directory lies to the one inside; empty when they overlap or share no bucket."""
    if inside.covers(other) or other.covers(inside) or inside.root != other.root:
        return ""
    return SIBLING if other.path.startswith(inside.path) else NEIGHBOUR


def ordered(locations: Sequence[Location]) -> list[Location]:
    """Return each location once, and first a pair of siblings by name, if there is one."""
    sorted_ = sorted(set(locations), key=lambda location: location.path)
    for first, second in pairwise(sorted_):
        if kind_of(first, second) == SIBLING:
            return [first, second, *(other for other in sorted_ if other not in (first, second))]
    return sorted_


_ADVICE: Final = {
    SIBLING: "no directory whose name begins like the one inside, as orders_old does beside orders: name two "
    "with --at and --outside, or let the storage's identity write below _sluice_verify/ for the time of this "
    "check",
    NEIGHBOUR: "no second directory with objects: name one with --outside, share another table with dir "
    "access, or let the storage's identity write below _sluice_verify/ for the time of this check",
}
