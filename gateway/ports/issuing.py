"""How credentials are issued, tried out and cut off."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from gateway.domain.credential import Credential
from gateway.domain.location import Location
from gateway.domain.probe import Action, Attempt
from gateway.domain.scope import Scope


class CredentialIssuer(Protocol):
    # Whether what it issues names the recipient, so that nobody else may be given it.
    names_recipients: bool

    async def issue(self, scope: Scope) -> Credential:
        """Return a credential that reads and lists the scope's location, and nothing else.

        Raise ``Unsupported`` for what the store cannot express safely, and ``Unavailable`` when it does not
        answer, with ``retry_after`` when it asks to be called less often. Never try again on your own for
        longer than a few seconds: the caller decides.
        """


class Probe(Protocol):
    """Uses a store as a recipient would, to find out what a credential really opens."""

    async def attempt(
        self, credential: Credential | None, action: Action, at: Location, path: str
    ) -> Attempt:
        """Act on ``path`` below ``at``, which LIST takes for a prefix of keys.

        Without a credential, act as the storage's own identity.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What became of an attempt to cut off credentials that are already out."""

    done: bool
    # What was done, or what the operator can do: commands, waiting times.
    words: str
    # How long what is issued lives, where the store does not go by the life that it is asked for.
    life: timedelta | None = None


class Cutter(Protocol):
    # What a cut ends for everybody, under a name that all storages that go by it have in common: an account,
    # a parent key. Empty where it ends the credentials of one recipient only.
    everybody: str
    # What a cut would do that others feel, for whoever has to agree to it; empty where it would not.
    consequence: str

    async def cut_off(self, recipient: str, issued_before: datetime) -> Cut:
        """Make the store refuse what was issued before that moment, where the settings allow it."""
