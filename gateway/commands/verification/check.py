"""One thing to try with a credential, and what its outcome proves."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gateway.domain.location import Location
from gateway.domain.probe import Action, Attempt, Verdict


class Expected(StrEnum):
    ALLOWED = "allowed"
    DENIED = "denied"


class Mark(StrEnum):
    PROVED = "proved"
    # The credential opens what it must not.
    BREACH = "BREACH"
    NOT_PROVED = "not proved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """An action on a path below a location, which LIST takes for a prefix of keys."""

    name: str
    action: Action
    at: Location
    path: str
    expected: Expected
    # What to note if it is allowed nevertheless, where that is known and accepted.
    tolerated: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the table."""

    check: str
    expected: str
    seen: str
    mark: Mark
    # What the store said, or what to do next.
    detail: str = ""


def judge(check: Check, attempt: Attempt, *, works: bool) -> Row:
    """Say what an attempt proves; ``works``: the credential opened what it is for just before."""
    mark, detail = _judged(check.expected, attempt, works=works)
    return Row(
        check=check.name, expected=check.expected, seen=attempt.verdict.value, mark=mark, detail=detail
    )


def not_proved(name: str, expected: str, seen: str, advice: str) -> Row:
    return Row(check=name, expected=expected, seen=seen, mark=Mark.NOT_PROVED, detail=advice)


def _judged(expected: Expected, attempt: Attempt, *, works: bool) -> tuple[Mark, str]:
    verdict, said = attempt.verdict, attempt.detail
    if verdict is Verdict.FAILED:
        return Mark.NOT_PROVED, _join("an error is neither a permission nor a denial: try again", said)
    if expected is Expected.ALLOWED:
        return (Mark.PROVED, "") if verdict is Verdict.ALLOWED else (Mark.NOT_PROVED, said)
    if verdict is not Verdict.DENIED:
        # To say that there is nothing of that name, the store had to let the credential look.
        looked = "the store let the credential look there" if verdict is Verdict.MISSING else ""
        return Mark.BREACH, _join(looked, said)
    if not works:
        return Mark.NOT_PROVED, "a credential that opens nothing is denied everywhere: see the reads inside"
    return Mark.PROVED, ""


def _join(words: str, said: str) -> str:
    return f"{words} ({said})" if words and said else words or said
