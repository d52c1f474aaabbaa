"""What becomes of an attempt to use a credential."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Action(StrEnum):
    READ = "read"
    LIST = "list"
    WRITE = "write"
    DELETE = "delete"


class Verdict(StrEnum):
    ALLOWED = "allowed"
    # The store said that this credential may not.
    DENIED = "denied"
    # It may, but there is nothing of that name.
    MISSING = "missing"
    # The store does not believe the credential, or does not answer: this proves nothing.
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    verdict: Verdict
    # The store's own words, without secrets.
    detail: str = ""
    # What a LIST gave: keys relative to the location that was listed.
    names: tuple[str, ...] = ()
