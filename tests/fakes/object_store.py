"""A store in memory that believes its own credentials and enforces a rule of the test's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.domain.location import Location
from gateway.domain.probe import Action, Attempt, Verdict
from gateway.domain.scope import Scope
from gateway.errors import Unavailable
from gateway.ports import Cut, OptionFault, Storage, StorageSettings

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)

# Says what becomes of an action on a key, or a prefix, by a credential for a directory; None: go on.
Rule = Callable[[Scope, Action, str], Verdict | None]


def scoped(scope: Scope, action: Action, key: str) -> Verdict | None:
    """Let a credential read and list below its directory."""
    below = key.startswith(f"{scope.location.path}/") and action in {Action.READ, Action.LIST}
    return None if below else Verdict.DENIED


class FakeObjectStore:
    """Is issuer, probe and cutter of a storage, and the vendor that opens it."""

    def __init__(
        self,
        rule: Rule = scoped,
        *,
        owner_may_write: bool = True,
        names_recipients: bool = True,
        cut: Cut | None = None,
        everybody: str = "",
        consequence: str = "",
    ) -> None:
        self.schemes = frozenset({"s3"})
        self.names_recipients = names_recipients
        self.objects: set[str] = set()
        self.written: list[str] = []
        self.deleted: list[str] = []
        self.scopes: list[Scope] = []
        self.cuts: list[tuple[str, datetime]] = []
        self.life: timedelta | None = None
        self.issues = True
        self.everybody = everybody
        self.consequence = consequence
        self._rule = rule
        self._owner_may_write = owner_may_write
        self._cut = cut
        self._by_id: dict[str, Scope] = {}

    def check(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        return [OptionFault(path=(name,), message="unknown option") for name in options]

    def check_files(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        return []

    def check_life(self, options: Mapping[str, object], life: timedelta) -> Sequence[str]:
        return []

    def check_dir(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        return []

    def check_url(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        return ["this storage signs no URLs yet: set accessModes: [dir]"]

    @asynccontextmanager
    async def open(self, settings: StorageSettings) -> AsyncIterator[Storage]:
        cutter = self if self._cut else None
        issuer = self if self.issues else None
        yield Storage(name=settings.name, prefix=settings.prefix, issuer=issuer, probe=self, cutter=cutter)

    async def issue(self, scope: Scope) -> Credential:
        if "broken" in scope.location.path:
            raise Unavailable("the role cannot be assumed")
        self.scopes.append(scope)
        number = f"AK{len(self.scopes)}"
        self._by_id[number] = scope
        secret = AwsTempCredentials(access_key_id=number, secret_access_key="s", session_token="t")
        return Credential(id=number, secret=secret, expires_at=NOON + (self.life or scope.life))

    async def attempt(
        self, credential: Credential | None, action: Action, at: Location, path: str
    ) -> Attempt:
        key = f"{at.path}/{path}".lstrip("/")
        verdict = (
            self._own(action) if credential is None else self._rule(self._by_id[credential.id], action, key)
        )
        if verdict is not None:
            return Attempt(verdict=verdict, detail=f"{verdict.value} by rule")
        return self._act(action, at, key)

    async def cut_off(self, recipient: str, issued_before: datetime) -> Cut:
        self.cuts.append((recipient, issued_before))
        assert self._cut is not None
        return self._cut

    def _own(self, action: Action) -> Verdict | None:
        return None if self._owner_may_write or action is Action.READ else Verdict.DENIED

    def _act(self, action: Action, at: Location, key: str) -> Attempt:
        if action is Action.LIST:
            top = f"{at.path}/".lstrip("/")
            names = tuple(sorted(name.removeprefix(top) for name in self.objects if name.startswith(key)))
            return Attempt(verdict=Verdict.ALLOWED, names=names)
        if action is Action.WRITE:
            self.objects.add(key)
            self.written.append(key)
        elif key not in self.objects:
            return Attempt(verdict=Verdict.MISSING, detail="not found")
        elif action is Action.DELETE:
            self.objects.remove(key)
            self.deleted.append(key)
        return Attempt(verdict=Verdict.ALLOWED)
