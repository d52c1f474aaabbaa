"""The catalog of a configuration file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from gateway.adapters.catalog_index import (
    CatalogIndex,
    PrincipalIndex,
    ShareIndex,
    sort_items,
    visible_shares,
)
from gateway.adapters.catalog_principals import PrincipalReader
from gateway.adapters.catalog_shares import ShareReader
from gateway.config.faults import ConfigError, Fault
from gateway.config.schema import Config
from gateway.config.views.building import compile_views
from gateway.domain.name import TableName, fold
from gateway.domain.principal import PlatformService, Principal
from gateway.domain.table import Schema, Share, Table
from gateway.domain.view import View


class YamlCatalog:
    """The port ``CatalogStore`` over an index in memory, which a reload replaces as a whole.

    Grants are asked before the index: what is not granted is never looked up, and so takes as long as what
    is not there.
    """

    def __init__(self, index: CatalogIndex) -> None:
        self._index = index
        self._has_had_services = bool(index.principals.services)

    def replace(self, index: CatalogIndex) -> None:
        self._index = index
        self._has_had_services |= bool(index.principals.services)

    @property
    def generation(self) -> str:
        return self._index.generation

    def token_expiries(self) -> Mapping[str, Sequence[datetime | None]]:
        """Return when the tokens of each recipient end; None for one that does not."""
        ends: dict[str, list[datetime | None]] = {}
        for entry in self._index.principals.tokens.values():
            if entry.principal is not None and not entry.principal.disabled:
                ends.setdefault(entry.principal.name, []).append(entry.expires_at)
        return ends

    async def find_by_token(self, token_sha256: bytes, now: datetime) -> Principal | None:
        return self._index.principals.find_by_token(token_sha256, now)

    async def find_by_identity(self, issuer: str, subject: str) -> Principal | None:
        return self._index.principals.identities.get((issuer, subject))

    async def find_recipient(self, name: str) -> Principal | None:
        return self._index.principals.recipients.get(name)

    @property
    def has_had_services(self) -> bool:
        return self._has_had_services

    async def find_service_by_certificate(self, names: Sequence[str]) -> PlatformService | None:
        certificates = self._index.principals.certificates
        return next((certificates[name] for name in names if name in certificates), None)

    async def find_service_with_keys(self, name: str) -> PlatformService | None:
        service = self._index.principals.services.get(name)
        return service if service is not None and service.public_keys else None

    async def find_share(self, principal: Principal, share: str) -> Share | None:
        found = self._granted(principal, share)
        return found.share if found is not None else None

    async def find_table(self, principal: Principal, name: TableName) -> Table | None:
        key = name.key
        return self._index.tables.get(key) if principal.may_see(key[0]) else None

    async def list_shares(self, principal: Principal, *, after: str, limit: int) -> Sequence[Share]:
        return self._index.visible_shares(principal).after(after, limit)

    async def list_schemas(
        self, principal: Principal, share: str, *, after: str, limit: int
    ) -> Sequence[Schema] | None:
        found = self._granted(principal, share)
        return found.schemas.after(after, limit) if found is not None else None

    async def list_tables(
        self, principal: Principal, share: str, schema: str, *, after: str, limit: int
    ) -> Sequence[Table] | None:
        found = self._granted(principal, share)
        tables = found.tables.get(fold(schema)) if found is not None else None
        return tables.after(after, limit) if tables is not None else None

    async def list_all_tables(
        self, principal: Principal, share: str, *, after: tuple[str, str], limit: int
    ) -> Sequence[Table] | None:
        found = self._granted(principal, share)
        return found.all_tables.after(after, limit) if found is not None else None

    def _granted(self, principal: Principal, share: str) -> ShareIndex | None:
        key = fold(share)
        return self._index.shares.get(key) if principal.may_see(key) else None


def build_index(config: Config) -> CatalogIndex:
    """Return the catalog of a configuration; raise ``ConfigError`` with all that is wrong with it."""
    faults: list[Fault] = []
    compiled, wrong = compile_views(config)
    faults += wrong
    shares = ShareReader(faults, config.snapshots.freshness, compiled).read(config.shares)
    principals = PrincipalReader(faults).read(config)
    if faults:
        raise ConfigError(faults)
    granted = {principal.shares for principal in _principals(principals)}
    return CatalogIndex(
        generation=_generation(shares, principals),
        shares=shares,
        tables={
            (share, *key): table
            for share, index in shares.items()
            for key, table in zip(index.all_tables.keys, index.all_tables.items, strict=True)
        },
        all_shares=sort_items({name: index.share for name, index in shares.items()}),
        visible={names: visible_shares(shares, names) for names in granted},
        principals=principals,
    )


def _principals(principals: PrincipalIndex) -> Iterator[Principal]:
    yield from principals.recipients.values()
    yield from (service.principal for service in principals.services.values())


def _generation(shares: Mapping[str, ShareIndex], principals: PrincipalIndex) -> str:
    """Return a hash of what is shared and with whom, whatever the order in the file.

    Not by which token: grants carry it to where nothing about tokens should be known.
    """
    digest = hashlib.sha256()
    for line in _content(shares, principals):
        digest.update(repr(line).encode())
    return digest.hexdigest()[:16]


def _content(shares: Mapping[str, ShareIndex], principals: PrincipalIndex) -> Iterator[tuple[object, ...]]:
    for _, index in sorted(shares.items()):
        share = index.share
        yield share.name, share.id, share.display_name, share.comment, sorted(share.properties.items())
        for schema in index.schemas.items:
            yield (schema.name,)
        for table in index.all_tables.items:
            yield (
                str(table.name),
                table.id,
                table.location.text,
                [location.text for location in table.auxiliary_locations],
                [mode.value for mode in table.access_modes],
                table.history_shared,
                table.start_version,
                table.r2_credentials,
                table.freshness,
                *_view_content(table.view),
            )
    for principal in sorted(_principals(principals), key=lambda principal: principal.name):
        permissions = sorted(permission.value for permission in principal.permissions)
        shares_seen = sorted(principal.shares)
        state = principal.disabled, principal.revoked_at
        # Added only where there are any: what has none is the same as it was before there could be.
        properties = (principal.properties,) if principal.properties else ()
        yield principal.name, principal.kind.value, state, permissions, shares_seen, *properties


def _view_content(view: View | None) -> tuple[object, ...]:
    if view is None:
        return ()
    sources = [
        (str(source.name), *(location.text for location in source.locations)) for source in view.sources
    ]
    return view.query, sources, view.properties, view.root.text, view.max_staleness, view.refresh_every
