"""Where a credential is tried: a directory that it is for, and objects beside it that are really there."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from gateway.commands.verification.hands import Hands
from gateway.domain.credential import Credential
from gateway.domain.location import Location, parse_location
from gateway.domain.probe import Action, Verdict
from gateway.errors import GatewayError

SIBLING: Final = "sibling by name"
NEIGHBOUR: Final = "neighbour"
BESIDE: Final = "object beside"
BARE: Final = "bare key"
CASE: Final = "case variant"

_LOG: Final = "_delta_log/"
_MOST_TRIED: Final = 5
# Some stores must open it, or Hadoop takes the directory for forbidden.
_BARE_IS_OPEN: Final = "it also opens an object with the very name of its directory, if there is one"
_CASE_IS_FOLDED: Final = (
    "it also opens directories that differ by upper and lower case only, which acceptCaseVariants accepts"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """An object that exists and that the credential must not open."""

    # How it lies to the directory.
    kind: str
    at: Location
    path: str
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
    # Whether the object inside is ours to overwrite.
    is_ours: bool = False


def child(location: Location, name: str) -> Location:
    return parse_location(f"{location.text}/{name}")


def parent(location: Location) -> Location:
    return parse_location(location.text.rpartition("/")[0])


def root(location: Location) -> Location:
    return parse_location(f"{location.scheme}://{location.authority}")


class ProbeObjects:
    """Objects of our own below ``_sluice_verify/`` and a random name, written and removed again."""

    def __init__(self, hands: Hands, prefix: Location, *, folds_case: bool) -> None:
        self._hands = hands
        self._folds_case = folds_case
        self._base = child(child(prefix, "_sluice_verify"), secrets.token_hex(8))
        self._written: list[tuple[Location, str]] = []

    async def write_first(self) -> tuple[Verdict, str]:
        """Write the object inside: what becomes of it tells whether the rest can be written."""
        return await self._write(child(self._base, "probe"), "inside.txt")

    async def prepare(self) -> Ground:
        """Write the rest, and issue a credential for the directory."""
        inside = child(self._base, "probe")
        outside, gaps = [], []
        for one in self._wanted():
            verdict, said = await self._write(one.at, one.path)
            if verdict is Verdict.ALLOWED:
                outside.append(one)
            elif one.kind != BARE:
                # Some stores keep no object under the name of a directory: there is none to open, then.
                gaps.append(Gap(kind=one.kind, advice=f"the probe object could not be written ({said})"))
        return Ground(
            kind="probe objects",
            inside=inside,
            credential=await self._hands.issue(inside),
            path="inside.txt",
            outside=outside,
            gaps=gaps,
            is_ours=True,
        )

    def _wanted(self) -> Iterator[Outside]:
        name = "outside.txt"
        yield Outside(kind=SIBLING, at=child(self._base, "probe-sibling"), path=name)
        yield Outside(kind=SIBLING, at=child(self._base, "probe2"), path=name)
        accepted = _CASE_IS_FOLDED if self._folds_case else ""
        yield Outside(kind=CASE, at=child(self._base, "PROBE"), path=name, tolerated=accepted)
        yield Outside(kind=NEIGHBOUR, at=child(self._base, "neighbour"), path=name)
        yield Outside(kind=BESIDE, at=self._base, path="probe.txt", has_directory=False)
        yield Outside(kind=BARE, at=self._base, path="probe", has_directory=False, tolerated=_BARE_IS_OPEN)

    async def remove(self) -> list[str]:
        """Remove what was written, and return what could not be."""
        left = []
        for at, path in reversed(self._written):
            attempt = await self._hands.attempt(None, Action.DELETE, at, path)
            if attempt.verdict not in {Verdict.ALLOWED, Verdict.MISSING}:
                left.append(f"{at}/{path}")
        return left

    async def _write(self, at: Location, path: str) -> tuple[Verdict, str]:
        attempt = await self._hands.attempt(None, Action.WRITE, at, path)
        if attempt.verdict in {Verdict.ALLOWED, Verdict.FAILED}:
            # An error may have come after the store had taken it.
            self._written.append((at, path))
        return attempt.verdict, attempt.detail or attempt.verdict.value


class ExistingObjects:
    """Directories that are there already: tables of the catalog, or what the operator names. Only read."""

    def __init__(self, hands: Hands, kind: str) -> None:
        self._hands = hands
        self._kind = kind

    async def prepare(self, inside: Location, outside: Sequence[Location]) -> Ground:
        """Find an object inside, and for each kind of object outside one that is really there."""
        credential = await self._hands.issue(inside)
        found, gaps = [], []
        for kind, advice in _ADVICE.items():
            one = await self._find(kind, inside, outside)
            if isinstance(one, Outside):
                found.append(one)
            else:
                gaps.append(Gap(kind=kind, advice=one or advice))
        return Ground(
            kind=self._kind,
            inside=inside,
            credential=credential,
            path=await self._object_in(credential, inside),
            outside=found,
            gaps=gaps,
        )

    async def _find(self, kind: str, inside: Location, candidates: Sequence[Location]) -> Outside | str:
        """Return an object that its own credential reads, or why there is none."""
        trouble = ""
        for at in [at for at in candidates if kind_of(inside, at) == kind][:_MOST_TRIED]:
            try:
                credential = await self._hands.issue(at)
            except GatewayError as exc:
                trouble = f"no credential for {at}: {exc.message}"
                continue
            path = await self._object_in(credential, at)
            if path and await self._reads(credential, at, path):
                return Outside(kind=kind, at=at, path=path)
            trouble = f"no object below {at} could be read with a credential of its own"
        return trouble

    async def _object_in(self, credential: Credential, at: Location) -> str:
        for prefix in (_LOG, ""):
            listed = await self._hands.attempt(credential, Action.LIST, at, prefix)
            names = [name for name in listed.names if name and not name.endswith("/")]
            if names:
                return min(names)
        return ""

    async def _reads(self, credential: Credential, at: Location, path: str) -> bool:
        return (await self._hands.attempt(credential, Action.READ, at, path)).verdict is Verdict.ALLOWED


def kind_of(inside: Location, other: Location) -> str:
    """Return how another directory lies to the one inside; empty when they overlap or share no bucket."""
    if inside.covers(other) or other.covers(inside) or root(inside) != root(other):
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
    SIBLING: "no directory whose name begins like the one inside, as orders_old does beside orders: let the "
    "storage's identity write below _sluice_verify/ for the time of this check, or name two with --at and "
    "--outside",
    NEIGHBOUR: "no second directory with objects: let the storage's identity write below _sluice_verify/ for "
    "the time of this check, share another table with dir access, or name one with --outside",
}
