"""What the services and the edge need from the world, in their own words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Protocol

from gateway.domain.audit import AuditEvent
from gateway.domain.credential import Credential
from gateway.domain.file_path import Paths
from gateway.domain.key import Keys
from gateway.domain.location import Location
from gateway.domain.name import TableName
from gateway.domain.principal import Principal
from gateway.domain.probe import Action, Attempt
from gateway.domain.rate import Rate
from gateway.domain.scope import Scope
from gateway.domain.table import Schema, Share, Table
from gateway.domain.window import Window

Clock = Callable[[], datetime]


def utcnow() -> datetime:
    """Return the time by the machine's clock."""
    return datetime.now(UTC)


class CatalogStore(Protocol):
    """Principals, shares, schemas and tables.

    What a principal is not granted does not exist for it: the finders and lists take the principal and
    do the same work in both cases. Lists are in the order of the folded names and start after a key.
    """

    @property
    def generation(self) -> str:
        """Return a fingerprint of the content, which changes with it and not with a restart."""

    async def find_by_token(self, token_sha256: bytes, now: datetime) -> Principal | None: ...

    async def find_by_identity(self, issuer: str, subject: str) -> Principal | None: ...

    async def find_recipient(self, name: str) -> Principal | None: ...

    async def find_service_by_certificate(self, names: Sequence[str]) -> Principal | None:
        """Return the platform service that one of a client certificate's names belongs to."""

    async def find_service_key(self, name: str) -> tuple[Principal, str] | None:
        """Return a platform service and the PEM key that verifies its JWTs, where it has one."""

    async def find_share(self, principal: Principal, share: str) -> Share | None: ...

    async def find_table(self, principal: Principal, name: TableName) -> Table | None: ...

    async def list_shares(self, principal: Principal, *, after: str, limit: int) -> Sequence[Share]: ...

    async def list_schemas(
        self, principal: Principal, share: str, *, after: str, limit: int
    ) -> Sequence[Schema] | None:
        """Return None when there is no such share."""

    async def list_tables(
        self, principal: Principal, share: str, schema: str, *, after: str, limit: int
    ) -> Sequence[Table] | None:
        """Return None when there is no such schema."""

    async def list_all_tables(
        self, principal: Principal, share: str, *, after: tuple[str, str], limit: int
    ) -> Sequence[Table] | None:
        """Return None when there is no such share; ``after`` is a folded schema and table."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file directly below a table's ``_delta_log/``."""

    name: str
    size: int
    modified_at: datetime


class LogReader(Protocol):
    """Reads a table's ``_delta_log/`` and nothing else."""

    async def list_log(self, table: Location, *, start: str) -> Sequence[LogFile]:
        """Return the files named ``start`` or sorting after it, by name; empty if there is no log."""

    async def read_log(self, table: Location, name: str) -> bytes:
        """Return a log file's content; raise ``NotFound`` when it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signatures:
    """Columns from which URLs are spliced: origin, path, ``?``, query, signature."""

    origin: str
    query: str = field(repr=False)
    # One for each path, joined by newlines: JSON-safe and URL-safe as they are.
    signatures: bytes = field(repr=False)
    expires_at: datetime

    def __len__(self) -> int:
        return self.signatures.count(b"\n") + 1 if self.signatures else 0


class SigningCost(Enum):
    """What a signature takes, and so how far it is worth being remembered."""

    # A hash: about what it costs to find it again.
    HASH = auto()
    # An operation with a private key: hundreds of hashes.
    PRIVATE_KEY = auto()
    # A call of the provider's: one replica makes it for all.
    CALL = auto()


class Signer(Protocol):
    cost: SigningCost
    # Whether it signs with something that is made for a window itself. Then all that it signs for turns at
    # once, so that within a window nothing is signed with two of them.
    has_sessions: bool

    async def sign(self, table: Location, paths: Paths, window: Window) -> Signatures:
        """Return a signature for each path below the table, in order, for reading only.

        They are the same bytes whenever, and in whichever replica, they are asked for within the window; they
        expire with it, or with what they were signed with if that ends before.
        """


class Sessions(Protocol):
    """What the replicas of a storage's signer sign with in a window, which is one and the same."""

    async def obtain(self, window: Window, mint: Callable[[], Awaitable[Credential]]) -> Credential:
        """Return what was minted for the window, by whichever replica; mint it where none has."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """What can be done with the locations below a prefix. None: this store cannot, or not safely."""

    name: str
    prefix: Location
    reader: LogReader | None = None
    signer: Signer | None = None
    issuer: CredentialIssuer | None = None
    probe: Probe | None = None
    cutter: Cutter | None = None
    # Whether its credentials open directories that differ by upper and lower case only, which was accepted.
    folds_case: bool = False
    # What the configuration says of its credentials; a vendor leaves these alone.
    credential_life: timedelta = timedelta(hours=1)
    allow_root: bool = False


class StorageMetrics(Protocol):
    """What only a vendor can see of its store."""

    def observe_policy_size(self, storage: str, percent: int) -> None:
        """Note how much of the room for a session policy the last one took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """What a vendor is opened with."""

    name: str
    prefix: Location
    # The storage entry's own settings, checked by the vendor.
    options: Mapping[str, object] = field(default_factory=dict, repr=False)
    # Where recipients reach the gateway, for URLs that lead back to it.
    public_url: str
    # None where the process does not sign local URLs.
    url_keys: Keys | None = None
    # None where the process does not sign at all: nothing that it opens can.
    sessions: Sessions | None = None
    # None where nobody counts.
    metrics: StorageMetrics | None = None
    clock: Clock = utcnow


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionFault:
    """What is wrong with one of an entry's settings. Quotes no value, which may be a secret."""

    # Below ``options``; empty for what concerns them all.
    path: tuple[str | int, ...] = ()
    # In words that stand after the path.
    message: str
    # The nearest right name or value.
    suggestion: str = ""


class Vendor(Protocol):
    """A kind of store, found by entry point under the name that a storage entry gives."""

    # The schemes, as ``Location`` folds them, that this vendor can serve.
    schemes: frozenset[str]

    def check(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        """Return what is wrong with an entry's settings; empty when nothing is."""

    def check_files(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        """Return which files that sound settings name cannot be read here; elsewhere they may be there."""

    def check_life(self, options: Mapping[str, object], life: timedelta) -> Sequence[str]:
        """Return why the store never gives credentials of that life, in words; the settings are sound."""

    def check_dir(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        """Return why no credential can be issued for a table there, in words; the settings are sound."""

    def check_url(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        """Return why no URL can be signed for a table there, in words; the settings are sound."""

    def open(self, settings: StorageSettings) -> AbstractAsyncContextManager[Storage]: ...


class Storages(Protocol):
    def find(self, location: Location) -> Storage | None:
        """Return the storage with the longest prefix that covers the location."""


class AuditLog(Protocol):
    async def append(self, event: AuditEvent) -> None:
        """Keep the event, on disk before this returns; raise ``Unavailable`` when that fails."""

    def note(self, event: AuditEvent) -> None:
        """Keep the event soon, without waiting."""


class RpcMetrics(Protocol):
    def observe_rpc(self, method: str, code: str, elapsed: timedelta) -> None:
        """Count a call that this process has answered; ``method`` is the full gRPC method name."""


class SnapshotMetrics(Protocol):
    """What the reading of logs costs, and what it saves."""

    def observe_load(self, kind: str, elapsed: timedelta, files: int) -> None:
        """Note that a log was read: ``cold`` from its checkpoint on, ``refresh`` by its new commits."""

    def count_fallback(self, reason: str) -> None:
        """Count a file of a log that could not be used and that something else took the place of."""

    def count_hints(self, kind: str, used: int, skipped: int) -> None:
        """Count predicate hints, ``sql`` or ``json``, by whether they could be used."""

    def count_pruned(self, kept: int, dropped: int) -> None:
        """Count the files that the hints of a query left in its answer, and out of it."""

    def set_memory(self, snapshots: int, size: int) -> None:
        """Tell how many snapshots are kept, and what they take."""

    def count_segment(self, *, is_kept: bool) -> None:
        """Count a segment of a snapshot's files by whether its lines were kept or had to be written."""

    def set_lines(self, size: int) -> None:
        """Tell what the lines that are kept take."""


class HttpMetrics(Protocol):
    def observe_http(self, route: str, method: str, status: int, elapsed: timedelta) -> None: ...

    def count_throttled(self) -> None: ...

    def count_files(self, files: int, size: int) -> None:
        """Count files whose URLs were handed out, and their bytes."""


class RateBuckets(Protocol):
    """A bucket of tokens for each recipient."""

    def take(self, principal: str, rate: Rate) -> timedelta | None:
        """Take one token; return the time until there is one when there is none."""
