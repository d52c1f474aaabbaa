"""The change data feed of a table: which rows were inserted, updated and deleted, version by version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.domain.grant import Grant
from gateway.errors import InvalidArgument, Unsupported
from gateway.services.snapshot.changes.question import ChangesAsked, ChangeSource
from gateway.services.snapshot.changes.reader import ChangeRules, Changes, open_changes
from gateway.services.snapshot.changes.schema_change import find_break
from gateway.services.snapshot.changes.selection import select_row_changes
from gateway.services.snapshot.changes.table_state import TableState

_FEED: Final = "delta.enableChangeDataFeed"


def require_feed(grant: Grant) -> None:
    """Raise ``InvalidArgument`` when the table is shared without its history."""
    if not grant.history_shared:
        raise InvalidArgument(f"cdf is not enabled on table {grant.table}: it is shared without its history")


async def open_feed(source: ChangeSource, asked: ChangesAsked) -> Changes:
    """Return the change data of a range."""
    require_feed(source.grant)
    return await open_changes(
        source, asked, ChangeRules(selection=select_row_changes, require=_require_readable)
    )


def _require_readable(states: Sequence[TableState], asked: ChangesAsked, grant: Grant) -> None:
    for state in states:
        if not state.metadata.is_on(_FEED):
            raise InvalidArgument(
                f"cdf is not enabled on table {grant.table}: change data was not recorded from version "
                f"{state.version} on; ask for versions with {_FEED} on"
            )
    if not asked.with_metadata:
        _require_one_schema(states, grant)


def _require_one_schema(states: Sequence[TableState], grant: Grant) -> None:
    """Raise ``Unsupported`` where the schema of the last version does not do for the files before it.

    Who asks for the historical metadata is told of every schema, and decides.
    """
    last = states[-1]
    for state in states[:-1]:
        if reason := find_break(state.metadata, last.metadata):
            raise Unsupported(
                f"the changes of table {grant.table} cannot be read from version {state.version} through "
                f"version {last.version}, as {reason} in between; ask for a range on either side of that, "
                "or with includeHistoricalMetadata=true"
            )
