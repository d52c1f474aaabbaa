"""What the services and the edge need from the world, in their own words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from gateway.domain.audit import AuditEvent
from gateway.domain.credential import Credential
from gateway.domain.grant import Grant
from gateway.domain.key import Keys
from gateway.domain.location import Location
from gateway.domain.name import TableName
from gateway.domain.principal import Principal
from gateway.domain.rate import Rate
from gateway.domain.table import Schema, Share, Table
from gateway.domain.window import Window

Clock = Callable[[], datetime]


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
    query: str
    signatures: Sequence[str]
    expires_at: datetime


class Signer(Protocol):
    async def sign(self, table: Location, paths: Sequence[str], window: Window) -> Signatures:
        """Return a signature for each percent-encoded path below the table, in order, for reading only."""


class CredentialIssuer(Protocol):
    async def issue(self, grant: Grant, location: Location) -> Credential:
        """Return a credential that reads and lists this location of the grant, and nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """What can be done with the locations below a prefix. None: this store cannot, or not safely."""

    name: str
    prefix: Location
    reader: LogReader | None = None
    signer: Signer | None = None
    issuer: CredentialIssuer | None = None


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


class Vendor(Protocol):
    """A kind of store, found by entry point under the name that a storage entry gives."""

    # The schemes, as ``Location`` folds them, that this vendor can serve.
    schemes: frozenset[str]

    def check(self, options: Mapping[str, object]) -> Sequence[str]:
        """Return what is wrong with an entry's settings, in words; empty when nothing is."""

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


class HttpMetrics(Protocol):
    def observe_http(self, route: str, method: str, status: int, elapsed: timedelta) -> None: ...

    def count_throttled(self) -> None: ...

    def count_files(self, files: int, size: int) -> None:
        """Count files whose URLs were handed out, and their bytes."""


class RateBuckets(Protocol):
    """A bucket of tokens for each recipient."""

    def take(self, principal: str, rate: Rate) -> timedelta | None:
        """Take one token; return the time until there is one when there is none."""
