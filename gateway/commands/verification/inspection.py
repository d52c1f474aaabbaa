"""Tries one storage's credential on everything that it must and must not open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from gateway.commands.verification.check import Check, Mark, Row, judge, not_proved
from gateway.commands.verification.ground import (
    MOST_TRIED,
    Ground,
    ProbeObjects,
    find_ground,
    kind_of,
    ordered,
)
from gateway.commands.verification.hands import Hands
from gateway.commands.verification.trials import (
    LIST_BY_NAME,
    denials,
    is_new,
    read_inside,
    reads,
)
from gateway.domain.credential import Credential
from gateway.domain.location import Location
from gateway.domain.probe import Action, Attempt, Verdict
from gateway.errors import GatewayError
from gateway.ports import Clock, utcnow

Progress = Callable[[str], None]

# How far the provider's clock and ours may be apart.
_SKEW: Final = timedelta(minutes=5)
_LIFE: Final = "life of the credential"
_GONE: Final = frozenset({Verdict.ALLOWED, Verdict.MISSING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """A storage's prefix, and directories below it that hold objects already."""

    prefix: Location
    # The catalog's tables with dir access.
    tables: Sequence[Location] = ()
    # What the operator named: the directory to issue for, and those that must not be opened.
    at: Location | None = None
    outside: Sequence[Location] = ()
    # Whether it is accepted that the store does not tell upper from lower case.
    folds_case: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What was found out about a storage."""

    rows: Sequence[Row]
    # What the credential was tried on.
    ground: str = ""
    notes: Sequence[str] = ()
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspector:
    """Inspects one storage, once."""

    hands: Hands
    places: Places
    # What the storage asks its provider for.
    life: timedelta
    progress: Progress
    clock: Clock = utcnow
    # Grows until the very end, when probe objects are removed.
    _notes: list[str] = field(default_factory=list)

    async def inspect(self) -> Inspection:
        try:
            return await self._inspect()
        except GatewayError as exc:
            advice = f"{exc.message}; check the identity and the role in the storage's options"
            return self._found([not_proved("issue a credential", "issued", "failed", advice)])

    async def _inspect(self) -> Inspection:
        if self.places.at is not None:
            return await self._try_existing("named directories", [self.places.at])
        objects = ProbeObjects(self.hands, self.places.prefix, folds_case=self.places.folds_case)
        try:
            self.progress("writing probe objects")
            verdict, said = await objects.write_first()
            if verdict is Verdict.ALLOWED:
                return await self._try_all(await objects.prepare(self.places.outside))
        finally:
            if left := await objects.remove():
                self._note(f"left behind, to be removed by hand: {', '.join(left)}")
        if verdict is Verdict.DENIED:
            return await self._try_tables()
        advice = (
            f"the store fails for the storage's own identity ({said}): check the endpoint and the identity"
        )
        return self._found([not_proved("write probe objects", "allowed", verdict.value, advice)])

    async def _try_tables(self) -> Inspection:
        # A directory that the operator wants closed cannot be the one that is open.
        tables = [
            at
            for at in ordered(self.places.tables)
            if all(kind_of(at, outside) for outside in self.places.outside)
        ]
        if not tables:
            advice = (
                "the storage's identity may not write, and no table with dir access lies here beside what "
                "--outside names: name directories that hold objects with --at and --outside. Of tables that "
                "are shared by URLs alone, read one with the official client: no URL is tried here"
            )
            return self._found([not_proved("find a directory", "a table", "none", advice)])
        self.progress("its identity may not write, as it should be: trying tables")
        return await self._try_existing("tables", tables[:MOST_TRIED])

    async def _try_existing(self, kind: str, candidates: Sequence[Location]) -> Inspection:
        """Try the first directory that holds an object, or the last."""
        places = self.places
        for inside in candidates:
            try:
                ground = await find_ground(self.hands, kind, inside, places.outside, ordered(places.tables))
            except GatewayError:
                if inside == candidates[-1]:
                    raise
                continue
            if ground.path:
                break
        self._note("not tried where objects are not ours: overwrite, bare key")
        if ground.untried:
            self._note(
                f"{ground.untried} more tables were not tried (at most {MOST_TRIED} of a kind are, and none "
                "without objects): name those that matter with --outside"
            )
        return await self._try_all(ground)

    async def _try_all(self, ground: Ground) -> Inspection:
        self.progress(f"trying what a credential for {ground.inside} opens")
        inside = await self._try(ground.credential, reads(ground), works=True)
        if not ground.path:
            advice = "no object could be found to read: name a directory that holds some with --at"
            inside.append(not_proved("read inside", "allowed", "nothing", advice))
        works = all(row.mark is Mark.PROVED for row in inside)
        denied = await self._try(ground.credential, denials(ground), works=works)
        if works:
            # What was denied in between is worth something only if the credential was good to the end.
            denied += await self._try(ground.credential, [read_inside(ground, ", again")], works=True)
        gaps = [not_proved(f"read {gap.kind}", "denied", "nothing", gap.advice) for gap in ground.gaps]
        now = self.clock()
        if words := shorter(ground.credential, self.life, now):
            self._note(words)
        life = judge_life(ground.credential, self.life, now)
        return self._found([life, *inside, *denied, *gaps], ground)

    async def _try(self, credential: Credential, checks: Iterable[Check], *, works: bool) -> list[Row]:
        rows = []
        for check in checks:
            attempt = await self.hands.attempt(credential, check.action, check.at, check.path)
            if attempt.verdict is Verdict.ALLOWED and is_new(check):
                await self._take_back(credential, check)
            if check.tolerated and attempt.verdict is Verdict.ALLOWED:
                self._note(check.tolerated)
            elif not await self._means_nothing(check, attempt):
                rows.append(judge(check, attempt, works=works))
        return rows

    async def _take_back(self, credential: Credential, check: Check) -> None:
        """Remove what a breach let us write."""
        for holder in (None, credential):
            attempt = await self.hands.attempt(holder, Action.DELETE, check.at, check.path)
            if attempt.verdict in _GONE:
                return
        self._note(f"left behind, to be removed by hand: {check.at}/{check.path}")

    async def _means_nothing(self, check: Check, attempt: Attempt) -> bool:
        """Tell whether nobody can do this: some stores are listed by whole directories only."""
        if check.name != LIST_BY_NAME or attempt.verdict is not Verdict.FAILED:
            return False
        own = await self.hands.attempt(None, check.action, check.at, check.path)
        return own.verdict is Verdict.FAILED

    def _note(self, words: str) -> None:
        if words not in self._notes:
            self._notes.append(words)

    def _found(self, rows: list[Row], ground: Ground | None = None) -> Inspection:
        return Inspection(
            rows=rows,
            ground=ground.kind if ground else "",
            notes=self._notes,
            expires_at=ground.credential.expires_at if ground else None,
        )


def judge_life(credential: Credential, asked: timedelta, now: datetime) -> Row:
    """Say whether a fresh credential ends when it should, by the provider's own word."""
    left = credential.expires_at - now
    expected, seen = f"at most {_short(asked)}", _short(left)
    if left <= timedelta(0):
        advice = "it has expired already: compare this machine's clock with the provider's"
        return not_proved(_LIFE, expected, "expired", advice)
    if left > asked + _SKEW:
        advice = "the provider gives longer than credentialLife asks for: set that to what it gives"
        return not_proved(_LIFE, expected, seen, advice)
    if left < asked / 2:
        advice = (
            f"{_short(asked)} were asked for and {_short(left)} given: raise what the provider allows, or "
            "set credentialLife to what it gives"
        )
        return not_proved(_LIFE, expected, seen, advice)
    return Row(check=_LIFE, expected=expected, seen=seen, mark=Mark.PROVED)


def shorter(credential: Credential, asked: timedelta, now: datetime) -> str:
    """Return what to note of a life that falls short of what was asked for, though not by much."""
    left = credential.expires_at - now
    if not asked / 2 <= left < asked - _SKEW:
        return ""
    return f"credentials live {_short(left)}, not the {_short(asked)} that were asked for"


def _short(span: timedelta) -> str:
    minutes, seconds = divmod(round(span.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [
        f"{number} {unit}" for number, unit in ((hours, "h"), (minutes, "min"), (seconds, "s")) if number
    ]
    return " ".join(parts) or "0 s"
