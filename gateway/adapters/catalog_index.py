"""A catalog in memory: immutable, sorted and hashed, so that a page costs the same wherever it starts."""

from __future__ import annotations

import hmac
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Generic, TypeVar

from gateway.domain.principal import ALL_SHARES, PlatformService, Principal
from gateway.domain.table import Schema, Share, Table

Key = TypeVar("Key", str, tuple[str, str])
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Sorted(Generic[Key, Item]):
    """Items in the order of their keys."""

    keys: tuple[Key, ...]
    items: tuple[Item, ...]

    def after(self, key: Key, limit: int) -> Sequence[Item]:
        """Return up to ``limit`` items whose keys come after a key, which need not be there itself."""
        start = bisect_right(self.keys, key)
        return self.items[start : start + limit]


def sort_items(items: Mapping[Key, Item]) -> Sorted[Key, Item]:
    keys = tuple(sorted(items))
    return Sorted(keys, tuple(items[key] for key in keys))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareIndex:
    """A share and all that is in it, by folded names."""

    share: Share
    schemas: Sorted[str, Schema]
    tables: Mapping[str, Sorted[str, Table]]
    all_tables: Sorted[tuple[str, str], Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEntry:
    """A recipient's token, as its hash."""

    sha256: bytes = field(repr=False)
    principal: Principal | None
    expires_at: datetime | None = None


# What a token that is not there is compared with, so that it takes as long as one that is.
_NO_TOKEN: Final = TokenEntry(sha256=bytes(32), principal=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalIndex:
    """Recipients and platform services, by what they are known by."""

    recipients: Mapping[str, Principal]
    tokens: Mapping[bytes, TokenEntry] = field(repr=False)
    identities: Mapping[tuple[str, str], Principal]
    services: Mapping[str, PlatformService]
    certificates: Mapping[str, PlatformService]
    # Everybody, where that was allowed.
    anonymous: Principal | None = None

    def find_by_token(self, token_sha256: bytes, now: datetime) -> Principal | None:
        entry = self.tokens.get(token_sha256, _NO_TOKEN)
        # A look-up by hash tells little about its key by its time; this tells nothing.
        known = hmac.compare_digest(entry.sha256, token_sha256)
        valid = entry.expires_at is None or now < entry.expires_at
        return (entry.principal if known and valid else None) or self.anonymous


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogIndex:
    """All that a catalog holds, by folded names."""

    generation: str
    shares: Mapping[str, ShareIndex]
    tables: Mapping[tuple[str, str, str], Table]
    all_shares: Sorted[str, Share]
    # Principals with the same grants share one list.
    visible: Mapping[frozenset[str], Sorted[str, Share]]
    principals: PrincipalIndex

    def visible_shares(self, principal: Principal) -> Sorted[str, Share]:
        if ALL_SHARES in principal.shares:
            return self.all_shares
        found = self.visible.get(principal.shares)
        return found if found is not None else visible_shares(self.shares, principal.shares)


def visible_shares(shares: Mapping[str, ShareIndex], granted: Iterable[str]) -> Sorted[str, Share]:
    """Return those of the granted shares that there are."""
    return sort_items({name: shares[name].share for name in granted if name in shares})
