"""A grant: the catalog's word that a principal may read a table, for one service and a minute."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from gateway.domain.location import Location
from gateway.domain.name import TableName
from gateway.domain.table import AccessMode
from gateway.errors import InvalidArgument, Unsupported

MAX_LIFE: Final = timedelta(seconds=60)


class Audience(StrEnum):
    SNAPSHOT = "snapshot"
    PRESIGN = "presign"
    VENDING = "vending"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a service may do for its bearer. Locations are taken from here, never from a request."""

    principal: str
    # The platform service that asked for the principal; empty when the principal asked itself.
    actor: str = ""
    audience: Audience
    table: TableName
    table_id: str
    location: Location
    auxiliary_locations: tuple[Location, ...] = ()
    access_modes: tuple[AccessMode, ...]
    history_shared: bool
    start_version: int = 0
    # Whether the directory holds nothing but what may be seen, whatever of its history is shared.
    holds_shown_only: bool = False
    # How old an answer about the latest version may be; in whole milliseconds.
    freshness: timedelta = timedelta(0)
    # Credentials of the principal from before this moment are not served again.
    revoked_at: datetime | None = None
    # The catalog's content at the time of the grant.
    generation: str
    expires_at: datetime

    def location_at(self, index: int) -> Location:
        """Return the table's own location for 0, or the nth auxiliary one."""
        locations = (self.location, *self.auxiliary_locations)
        if not 0 <= index < len(locations):
            raise InvalidArgument(f"the grant for {self.table} has no location {index}")
        return locations[index]

    @property
    def opens_directory(self) -> bool:
        """Tell whether a credential for the directory shows nothing that is not shared."""
        return self.holds_shown_only or (self.history_shared and self.start_version == 0)

    def require(self, mode: AccessMode) -> None:
        if mode not in self.access_modes:
            offered = ", ".join(self.access_modes)
            raise Unsupported(f"table {self.table} does not offer {mode} access, only {offered}")
