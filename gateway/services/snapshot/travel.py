"""Which version of a table a request means, and whether its grant reaches that far back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

from gateway.domain.grant import Grant
from gateway.errors import InvalidArgument, Unsupported
from gateway.services.snapshot.log.history import History, read_history
from gateway.services.snapshot.log.segment import LogListing
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.snapshot import Snapshot
from gateway.services.snapshot.state.store import SnapshotStore
from gateway.services.snapshot.timestamp import parse_timestamp
from gateway.v1.snapshot_pb2 import TableAt


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """A snapshot and, where a point in the table's history was asked for, its time."""

    snapshot: Snapshot
    is_historical: bool = False
    timestamp: int | None = None


async def find_view(store: SnapshotStore, log: TableLog, grant: Grant, at: TableAt) -> TableView:
    """Return the table as it was at a point of its history, or as it is."""
    asked = at.WhichOneof("at")
    if asked is None:
        return TableView(snapshot=await store.latest(log))
    _require_history(grant)
    time = parse_timestamp(at.timestamp) if asked == "timestamp" else None
    listing = await store.list_log(log)
    history = await _history(store, log, listing) if time else None
    version = _version_as_of(time, grant, history) if time and history else at.version
    _check(grant, listing, version)
    snapshot = await store.at(log, listing, version)
    return TableView(snapshot=snapshot, is_historical=True, timestamp=await _timestamp_of(snapshot, listing))


async def find_version(store: SnapshotStore, log: TableLog, grant: Grant, starting_at: str) -> int:
    """Return the current version, or the first one of the grant's at a time or after it."""
    if not starting_at:
        return await store.latest_version(log)
    _require_history(grant)
    time = parse_timestamp(starting_at)
    listing = await store.list_log(log)
    history = await _history(store, log, listing)
    version = history.since(grant.start_version).version_from(time)
    _check(grant, listing, version)
    return version


def _version_as_of(time: datetime, grant: Grant, history: History) -> int:
    shared = history.since(grant.start_version)
    if shared.first > history.first and shared.begins_after(time):
        # Not even whether and when there were earlier versions is shared.
        raise _not_shared(grant)
    return shared.version_as_of(time)


async def _history(store: SnapshotStore, log: TableLog, listing: LogListing) -> History:
    """Return when the versions were committed; raise ``Unsupported`` when their files do not tell."""
    history = await asyncio.to_thread(read_history, listing)
    if history is None:
        raise Unsupported("the table's log no longer holds the commits that tell when its versions were made")
    if _has_times_in_commits(await store.latest(log)):
        raise Unsupported(
            "the table keeps times inside of its commits, which are not read yet; use a version"
        )
    return history


async def _timestamp_of(snapshot: Snapshot, listing: LogListing) -> int | None:
    history = await asyncio.to_thread(read_history, listing)
    if history is None or _has_times_in_commits(snapshot):
        return None
    return history.timestamp_of(snapshot.version)


def _has_times_in_commits(snapshot: Snapshot) -> bool:
    return snapshot.metadata.configuration.get("delta.enableInCommitTimestamps", "").lower() == "true"


def _require_history(grant: Grant) -> None:
    if not grant.history_shared:
        raise Unsupported(
            "Reading table by version or timestamp is not supported "
            f"because history sharing is not enabled on table {grant.table}"
        )


def _check(grant: Grant, listing: LogListing, version: int) -> None:
    if version < 0:
        raise InvalidArgument("a version must be greater than or equal to 0")
    if version < grant.start_version:
        raise _not_shared(grant)
    if version > listing.latest:
        raise InvalidArgument(f"version {version} is after the latest available version {listing.latest}")


def _not_shared(grant: Grant) -> InvalidArgument:
    return InvalidArgument(f"You can only query table data since version {grant.start_version}")
