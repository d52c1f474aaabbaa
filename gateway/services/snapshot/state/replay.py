"""From what was read of a log to a snapshot: what was added and not removed since."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.services.snapshot.log.actions import Actions
from gateway.services.snapshot.log.fault import faulty
from gateway.services.snapshot.log.loading import Loaded
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.protocol import Protocol
from gateway.services.snapshot.state.growth import grow, start
from gateway.services.snapshot.state.snapshot import Snapshot


def load(loaded: Loaded) -> Snapshot:
    """Return the version that a checkpoint, if any, and the commits after it make up."""
    parts = (*loaded.checkpoint, *loaded.commits)
    protocol, metadata = last_protocol(parts), last_metadata(parts)
    if protocol is None or metadata is None:
        missing = "protocol" if protocol is None else "metaData"
        raise faulty(f"is damaged: it has no {missing} action")
    return Snapshot(
        version=loaded.version,
        protocol=protocol,
        metadata=metadata,
        files=grow(start(loaded.checkpoint), loaded.commits),
        anchor=loaded.anchor,
    )


def advance(base: Snapshot, loaded: Loaded) -> Snapshot:
    """Return the version that a snapshot becomes by the commits after it."""
    return Snapshot(
        version=loaded.version,
        protocol=last_protocol(loaded.commits) or base.protocol,
        metadata=last_metadata(loaded.commits) or base.metadata,
        files=grow(base.files, loaded.commits),
        anchor=loaded.anchor,
    )


def last_protocol(parts: Sequence[Actions]) -> Protocol | None:
    return next((part.protocol for part in reversed(parts) if part.protocol), None)


def last_metadata(parts: Sequence[Actions]) -> Metadata | None:
    return next((part.metadata for part in reversed(parts) if part.metadata), None)
