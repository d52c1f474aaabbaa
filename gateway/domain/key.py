"""Keys by purpose: a current one that signs, a previous one that is still believed."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from enum import StrEnum


class Purpose(StrEnum):
    LIST_PAGE = "listPage"
    FILE_PAGE = "filePage"
    REFRESH = "refresh"
    LOCAL_URL = "localUrl"
    SEALING = "sealing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A secret with a public name."""

    id: str
    secret: bytes = field(repr=False)

    def mac(self, message: bytes) -> bytes:
        return hmac.digest(self.secret, message, "sha256")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys of one purpose."""

    current: Key
    previous: Key | None = None

    def find(self, key_id: str) -> Key | None:
        for key in (self.current, self.previous):
            if key is not None and hmac.compare_digest(key.id.encode(), key_id.encode()):
                return key
        return None
