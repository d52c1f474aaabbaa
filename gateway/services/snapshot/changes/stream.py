"""Queries from a starting version: the data files that came and went since, for those who follow a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gateway.domain.grant import Grant
from gateway.services.snapshot.changes.question import ChangesAsked, ChangeSource
from gateway.services.snapshot.changes.reader import ChangeRules, Changes, open_changes
from gateway.services.snapshot.changes.selection import select_data_changes
from gateway.services.snapshot.changes.table_state import TableState


async def open_stream(source: ChangeSource, asked: ChangesAsked) -> Changes:
    """Return the data changes of a range, with the metadata of its later versions."""
    rules = ChangeRules(selection=select_data_changes, require=_require_nothing)
    return await open_changes(source, replace(asked, with_metadata=True), rules)


def _require_nothing(states: Sequence[TableState], asked: ChangesAsked, grant: Grant) -> None:
    """Leave a schema that changes to the client, which is told of it."""
