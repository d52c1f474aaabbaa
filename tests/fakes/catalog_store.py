"""Catalog stores for tests: one of plain lists, and one that remembers what it was asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from gateway.domain.name import TableName, fold
from gateway.domain.principal import PlatformService, Principal
from gateway.domain.table import Schema, Share, Table
from gateway.ports import CatalogStore

Item = TypeVar("Item")


@dataclass
class FakeCatalogStore:
    """A catalog of plain lists, searched from the start each time."""

    generation: str = "generation-1"
    shares: list[Share] = field(default_factory=list)
    schemas: list[Schema] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    recipients: list[Principal] = field(default_factory=list)
    # By the hash of a token: whose it is, and until when.
    tokens: dict[bytes, tuple[Principal, datetime | None]] = field(default_factory=dict)
    identities: dict[tuple[str, str], Principal] = field(default_factory=dict)
    certificates: dict[str, Principal] = field(default_factory=dict)
    # PEM, by the name that tokens have as their subject.
    service_keys: dict[str, tuple[Principal, tuple[str, ...]]] = field(default_factory=dict)
    # Whether there were services that were removed since.
    had_services: bool = False

    async def find_by_token(self, token_sha256: bytes, now: datetime) -> Principal | None:
        principal, expires_at = self.tokens.get(token_sha256, (None, None))
        return principal if expires_at is None or now < expires_at else None

    async def find_by_identity(self, issuer: str, subject: str) -> Principal | None:
        return self.identities.get((issuer, subject))

    async def find_recipient(self, name: str) -> Principal | None:
        return next((recipient for recipient in self.recipients if recipient.name == name), None)

    @property
    def has_had_services(self) -> bool:
        return self.had_services or bool(self.certificates or self.service_keys)

    async def find_service_by_certificate(self, names: Sequence[str]) -> PlatformService | None:
        for name in names:
            if (principal := self.certificates.get(name)) is not None:
                _, keys = self.service_keys.get(principal.name, (None, ()))
                return PlatformService(principal=principal, certificate=name, public_keys=keys)
        return None

    async def find_service_with_keys(self, name: str) -> PlatformService | None:
        if name not in self.service_keys:
            return None
        principal, keys = self.service_keys[name]
        certificates = (each for each, owner in self.certificates.items() if owner.name == name)
        return PlatformService(principal=principal, certificate=next(certificates, ""), public_keys=keys)

    async def find_share(self, principal: Principal, share: str) -> Share | None:
        visible = (each for each in self.shares if principal.may_see(fold(each.name)))
        return next((each for each in visible if fold(each.name) == fold(share)), None)

    async def find_table(self, principal: Principal, name: TableName) -> Table | None:
        found = next((table for table in self.tables if table.name.key == name.key), None)
        return found if principal.may_see(fold(name.share)) else None

    async def list_shares(self, principal: Principal, *, after: str, limit: int) -> Sequence[Share]:
        visible = ((fold(each.name), each) for each in self.shares if principal.may_see(fold(each.name)))
        return _page(visible, after, limit)

    async def list_schemas(
        self, principal: Principal, share: str, *, after: str, limit: int
    ) -> Sequence[Schema] | None:
        if await self.find_share(principal, share) is None:
            return None
        inside = ((fold(each.name), each) for each in self.schemas if fold(each.share) == fold(share))
        return _page(inside, after, limit)

    async def list_tables(
        self, principal: Principal, share: str, schema: str, *, after: str, limit: int
    ) -> Sequence[Table] | None:
        place = (fold(share), fold(schema))
        known = {(fold(each.share), fold(each.name)) for each in self.schemas}
        if place not in known or not principal.may_see(fold(share)):
            return None
        inside = ((table.name.key[2], table) for table in self.tables if table.name.key[:2] == place)
        return _page(inside, after, limit)

    async def list_all_tables(
        self, principal: Principal, share: str, *, after: tuple[str, str], limit: int
    ) -> Sequence[Table] | None:
        if await self.find_share(principal, share) is None:
            return None
        inside = ((table.name.key[1:], table) for table in self.tables if table.name.key[0] == fold(share))
        return _page(inside, after, limit)


class RecordingCatalogStore:
    """A catalog that remembers which methods it was asked by, and how often."""

    def __init__(self, store: CatalogStore) -> None:
        self._store = store
        self.calls: list[str] = []

    @property
    def generation(self) -> str:
        self.calls.append("generation")
        return self._store.generation

    @property
    def has_had_services(self) -> bool:
        self.calls.append("has_had_services")
        return self._store.has_had_services

    async def find_by_token(self, token_sha256: bytes, now: datetime) -> Principal | None:
        self.calls.append("find_by_token")
        return await self._store.find_by_token(token_sha256, now)

    async def find_by_identity(self, issuer: str, subject: str) -> Principal | None:
        self.calls.append("find_by_identity")
        return await self._store.find_by_identity(issuer, subject)

    async def find_recipient(self, name: str) -> Principal | None:
        self.calls.append("find_recipient")
        return await self._store.find_recipient(name)

    async def find_service_by_certificate(self, names: Sequence[str]) -> PlatformService | None:
        self.calls.append("find_service_by_certificate")
        return await self._store.find_service_by_certificate(names)

    async def find_service_with_keys(self, name: str) -> PlatformService | None:
        self.calls.append("find_service_with_keys")
        return await self._store.find_service_with_keys(name)

    async def find_share(self, principal: Principal, share: str) -> Share | None:
        self.calls.append("find_share")
        return await self._store.find_share(principal, share)

    async def find_table(self, principal: Principal, name: TableName) -> Table | None:
        self.calls.append("find_table")
        return await self._store.find_table(principal, name)

    async def list_shares(self, principal: Principal, *, after: str, limit: int) -> Sequence[Share]:
        self.calls.append("list_shares")
        return await self._store.list_shares(principal, after=after, limit=limit)

    async def list_schemas(
        self, principal: Principal, share: str, *, after: str, limit: int
    ) -> Sequence[Schema] | None:
        self.calls.append("list_schemas")
        return await self._store.list_schemas(principal, share, after=after, limit=limit)

    async def list_tables(
        self, principal: Principal, share: str, schema: str, *, after: str, limit: int
    ) -> Sequence[Table] | None:
        self.calls.append("list_tables")
        return await self._store.list_tables(principal, share, schema, after=after, limit=limit)

    async def list_all_tables(
        self, principal: Principal, share: str, *, after: tuple[str, str], limit: int
    ) -> Sequence[Table] | None:
        self.calls.append("list_all_tables")
        return await self._store.list_all_tables(principal, share, after=after, limit=limit)


Key = TypeVar("Key", str, tuple[str, str])


def _page(keyed: Iterable[tuple[Key, Item]], after: Key, limit: int) -> Sequence[Item]:
    later = sorted(((key, item) for key, item in keyed if key > after), key=lambda pair: pair[0])
    return [item for _, item in later[:limit]]
