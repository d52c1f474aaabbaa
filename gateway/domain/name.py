"""Names of shares, schemas and tables, and the protocol's rules for them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from gateway.errors import InvalidArgument

MAX_LENGTH: Final = 255

_FORBIDDEN: Final = re.compile(r"[\x00-\x20/\x7f]")
_FORBIDDEN_BELOW_SHARE: Final = re.compile(r"[\x00-\x20/\x7f.]")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
# A URL path with such a segment is another path by the time it arrives.
_DOT_SEGMENTS: Final = frozenset({".", ".."})


@dataclass(frozen=True, slots=True)
class TableName:
    """Where a table stands in the catalog, as it was written; compare by ``key``."""

    share: str
    schema: str
    table: str

    @property
    def key(self) -> tuple[str, str, str]:
        return fold(self.share), fold(self.schema), fold(self.table)

    def __str__(self) -> str:
        return f"{self.share}.{self.schema}.{self.table}"


def fold(name: str) -> str:
    """Return the form under which names that differ only in case are the same."""
    # Not lower(): it spells a sigma by its place in the word, so that ΟΔΟΣ and οδοσ would differ.
    return name.casefold()


def check_share_name(name: str) -> str:
    if name in _DOT_SEGMENTS:
        raise InvalidArgument(f"a share name must not be {name!r}: no URL can carry it")
    return _check(name, "share", _FORBIDDEN)


def check_schema_name(name: str) -> str:
    return _check(name, "schema", _FORBIDDEN_BELOW_SHARE)


def check_table_name(name: str) -> str:
    return _check(name, "table", _FORBIDDEN_BELOW_SHARE)


def _check(name: str, kind: str, forbidden: re.Pattern[str]) -> str:
    if not name:
        raise InvalidArgument(f"a {kind} name must not be empty")
    if len(name) > MAX_LENGTH:
        raise InvalidArgument(f"a {kind} name has at most {MAX_LENGTH} characters, this one has {len(name)}")
    if found := forbidden.search(name):
        raise InvalidArgument(f"a {kind} name must not contain {found.group()!r}: {name!r}")
    if _SURROGATE.search(name):
        raise InvalidArgument(f"a {kind} name must not contain a lone surrogate: {name!r}")
    return name
