"""What a table was at the versions of a range: protocol and metadata, without its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.services.snapshot.changes.question import ChangeSource
from gateway.services.snapshot.changes.reading import ChangeRange
from gateway.services.snapshot.changes.survey import Turn
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.protocol import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    version: int
    protocol: Protocol
    metadata: Metadata


async def find_states(
    source: ChangeSource, versions: ChangeRange, turns: Sequence[Turn]
) -> Sequence[TableState]:
    """Return the state of the first version of a range, and of each that changes it."""
    states = [await _first_state(source, versions, turns)]
    for turn in turns:
        if turn.version > versions.first:
            last = states[-1]
            states.append(
                TableState(
                    version=turn.version,
                    protocol=turn.protocol or last.protocol,
                    metadata=turn.metadata or last.metadata,
                )
            )
    return states


async def _first_state(source: ChangeSource, versions: ChangeRange, turns: Sequence[Turn]) -> TableState:
    first = turns[0] if turns and turns[0].version == versions.first else None
    if first is not None and first.protocol is not None and first.metadata is not None:
        return TableState(version=versions.first, protocol=first.protocol, metadata=first.metadata)
    version = versions.first
    if versions.last == source.listing.latest and not any(turn.version > version for turn in turns):
        # Nothing has changed since, and the latest version is at hand far more often than any other.
        version = versions.last
    snapshot = await source.store.at(source.log, source.listing, version)
    return TableState(version=versions.first, protocol=snapshot.protocol, metadata=snapshot.metadata)
