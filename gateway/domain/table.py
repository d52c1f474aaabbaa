"""Shares, schemas and tables as the catalog knows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from gateway.domain.location import Location
from gateway.domain.name import TableName
from gateway.domain.view import View


class AccessMode(StrEnum):
    URL = "url"
    DIR = "dir"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    name: str
    id: str
    display_name: str = ""
    comment: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    name: str
    share: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A catalog entry: what is shared under a name, and how."""

    name: TableName
    id: str
    share_id: str
    location: Location
    auxiliary_locations: tuple[Location, ...] = ()
    access_modes: tuple[AccessMode, ...] = (AccessMode.URL,)
    history_shared: bool = False
    start_version: int = 0
    # Whether answers repeat the keys as ``r2Credentials``, which drafts of the protocol had.
    r2_credentials: bool = False
    # How old an answer about the latest version may be; nothing: every request checks.
    freshness: timedelta = timedelta(0)
    # What is shared is what this shows, where it was last made; its root stands for a location until then.
    view: View | None = None
    # Whether the directory holds nothing but what may be seen, whatever of its history is shared.
    holds_shown_only: bool = False

    @property
    def is_placed(self) -> bool:
        """Tell whether there is anything at its location: a view is nowhere until it was made."""
        return self.view is None or self.location != self.view.root
