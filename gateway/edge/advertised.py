"""Which of the locations that a table advertises a client means."""

from __future__ import annotations

from gateway.errors import InvalidArgument
from gateway.v1.catalog_pb2 import Table


def locations_of(table: Table) -> tuple[str, ...]:
    return (table.location, *table.auxiliary_locations)


def find_location(table: Table, asked: str | None) -> int:
    """Return the number of a location: 0 is the table's own, n the nth auxiliary one.

    Texts are compared, not places: a location that is spelled otherwise may be the same to us and another to
    the store. Only a slash at the end is tolerated, which clients like to add.
    """
    if asked is None:
        return 0
    advertised = locations_of(table)
    for number, text in enumerate(advertised):
        if asked in {text, f"{text}/"}:
            return number
    raise InvalidArgument(
        f"the location must be one that the table advertises, spelled as there: {', '.join(advertised)}; no "
        "other has a credential, even if it is the same as or under this table's configured storage"
    )
