"""What the catalog service needs to know: who there is, and what is shared."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from gateway.domain.name import TableName
from gateway.domain.principal import PlatformService, Principal
from gateway.domain.table import Schema, Share, Table


class ServiceDirectory(Protocol):
    """The platform services that there are, by what they prove themselves with."""

    @property
    def has_had_services(self) -> bool:
        """Tell whether any is configured, or was since the start: else nobody can be asked to be one."""

    async def find_service_by_certificate(self, names: Sequence[str]) -> PlatformService | None:
        """Return the platform service that one of a client certificate's names belongs to."""

    async def find_service_with_keys(self, name: str) -> PlatformService | None:
        """Return the platform service of that name, where it has keys that verify its JWTs."""


class CatalogStore(ServiceDirectory, Protocol):
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
