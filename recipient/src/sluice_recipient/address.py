"""The address of a shared table: a profile file and a name, as in ``profile.share#share.schema.table``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from sluice_recipient.errors import ProfileError

_PARTS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TableName:
    share: str
    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.share}.{self.schema}.{self.table}"

    @property
    def path(self) -> str:
        """Return the path of the table below the gateway's endpoint."""
        share, schema, table = (quote(part, safe="") for part in (self.share, self.schema, self.table))
        return f"/shares/{share}/schemas/{schema}/tables/{table}"


def parse_address(address: str) -> tuple[Path, TableName]:
    """Split an address into the profile's file and the table's name."""
    # A path may have a # in it, a name may not.
    profile, separator, name = address.rpartition("#")
    if not separator or not profile:
        raise ProfileError(f"{address!r} is not a table's address: write PROFILE#SHARE.SCHEMA.TABLE")
    return Path(profile).expanduser(), parse_name(name)


def parse_name(name: str) -> TableName:
    """Return the parts of ``share.schema.table``; only the share may have dots in it."""
    parts = name.rsplit(".", _PARTS - 1)
    if len(parts) != _PARTS or not all(parts):
        raise ProfileError(f"{name!r} is not a table's name: write SHARE.SCHEMA.TABLE")
    share, schema, table = parts
    return TableName(share=share, schema=schema, table=table)
