"""Which version of a table a request means, and whether its grant reaches that far back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from gateway.domain.grant import Grant
from gateway.errors import InvalidArgument, Unsupported
from gateway.services.snapshot.log.history import History, read_history
from gateway.services.snapshot.log.listing import LogListing
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
    # In milliseconds since the epoch; None also where the log no longer tells.
    timestamp: int | None = None


class VersionRange(NamedTuple):
    """Versions whose commits are all there, the last one included."""

    first: int
    last: int
    listing: LogListing
    # Knows the times of all of them.
    history: History


async def find_view(store: SnapshotStore, log: TableLog, grant: Grant, at: TableAt) -> TableView:
    """Return the table as it was at a point of its history, or as it is."""
    asked = at.WhichOneof("at")
    if asked is None:
        snapshot = await store.latest(log, grant.freshness)
        _require_shared(grant, snapshot.version)
        return TableView(snapshot=snapshot)
    _require_history(grant)
    time = parse_timestamp("timestamp", at.timestamp) if asked == "timestamp" else None
    listing = await store.list_log(log)
    version = at.version
    if time is not None:
        version = await _version_as_of(time, grant, await _read_history(store, log, listing))
    _check(grant, listing, version)
    snapshot = await store.at(log, listing, version)
    timestamp = await _timestamp_of(store, log, listing, snapshot)
    return TableView(snapshot=snapshot, is_historical=True, timestamp=timestamp)


async def find_pinned(
    store: SnapshotStore, log: TableLog, grant: Grant, at: TableAt, version: int
) -> TableView:
    """Return the version that a token of ours names, as the request that it was made for was shown it."""
    if at.WhichOneof("at") is not None:
        return await find_view(store, log, grant, TableAt(version=version))
    # What came after it is not read: that takes time, and it may be damaged.
    if await store.latest_version(log, grant.freshness) == version:
        snapshot = await store.latest(log, grant.freshness)
        if snapshot.version == version:
            _require_shared(grant, version)
            return TableView(snapshot=snapshot)
    listing = await store.list_log(log)
    _check(grant, listing, version)
    return TableView(snapshot=await store.at(log, listing, version))


async def find_version(store: SnapshotStore, log: TableLog, grant: Grant, starting_at: str) -> int:
    """Return the current version, or the first one of the grant's at a time or after it."""
    if not starting_at:
        latest = await store.latest_version(log, grant.freshness)
        _require_shared(grant, latest)
        return latest
    _require_history(grant)
    time = parse_timestamp("startingTimestamp", starting_at)
    listing = await store.list_log(log)
    history = await _read_history(store, log, listing)
    version = await history.version_from(time, grant.start_version)
    _check(grant, listing, version)
    return version


async def find_range(
    store: SnapshotStore, log: TableLog, grant: Grant, start: TableAt, end: TableAt
) -> VersionRange:
    """Return the versions from a point of the table's history to another one, or to the latest.

    A time that starts the range is that of the first version at it or after it, one that ends it that of the
    last version by then. An end that is still to come is the latest version.
    """
    _require_history(grant)
    listing = await store.list_log(log)
    history = await _read_history(store, log, listing)
    first = await _first(grant, history, start)
    _check(grant, listing, first)
    last = await _last(grant, history, end)
    if first > last:
        raise InvalidArgument(f"the range ends with version {last}, before its start, version {first}")
    if first < history.first:
        raise InvalidArgument(
            f"the table's log no longer holds the changes of version {first}, "
            f"only those since version {history.first}"
        )
    await history.load(range(first, last + 1))
    return VersionRange(first, last, listing, history)


async def _first(grant: Grant, history: History, start: TableAt) -> int:
    asked = start.WhichOneof("at")
    if asked is None:
        raise InvalidArgument("a range of versions takes a startingVersion or a startingTimestamp")
    if asked == "version":
        return start.version
    return await history.version_from(
        parse_timestamp("startingTimestamp", start.timestamp), grant.start_version
    )


async def _last(grant: Grant, history: History, end: TableAt) -> int:
    asked = end.WhichOneof("at")
    if asked == "version":
        return min(end.version, history.latest)
    if asked is None:
        return history.latest
    time = parse_timestamp("endingTimestamp", end.timestamp)
    if await history.ends_before(time):
        return history.latest
    return await _version_as_of(time, grant, history)


async def _version_as_of(time: datetime, grant: Grant, history: History) -> int:
    if grant.start_version > history.first and await history.begins_after(time, grant.start_version):
        # Not even whether and when there were earlier versions is shared.
        raise _not_shared(grant)
    return await history.version_as_of(time, grant.start_version)


async def _read_history(store: SnapshotStore, log: TableLog, listing: LogListing) -> History:
    """Return when the versions were committed; raise ``Unsupported`` when their files do not tell."""
    history = await read_history(log, listing, (await store.latest(log)).metadata)
    if history is None:
        raise Unsupported("the table's log no longer holds the commits that tell when its versions were made")
    return history


async def _timestamp_of(
    store: SnapshotStore, log: TableLog, listing: LogListing, snapshot: Snapshot
) -> int | None:
    history = await read_history(log, listing, snapshot.metadata)
    if history is None:
        return None
    timestamp = history.timestamp_of(snapshot.version)
    if timestamp is not None or snapshot.version < history.first:
        # The latest need not be read for that: nothing that came later makes a commit tell its time.
        return timestamp
    history = await _latest_history(store, log, listing) or history
    await history.load([snapshot.version])
    return history.timestamp_of(snapshot.version)


async def _latest_history(store: SnapshotStore, log: TableLog, listing: LogListing) -> History | None:
    """Return the history as the latest version tells it; None when that version cannot be read."""
    # Commits may tell their times no longer, or anew since another version: then their files do, for all.
    try:
        latest = await store.at(log, listing, listing.latest)
    except Unsupported:
        return None
    return await read_history(log, listing, latest.metadata)


def _require_history(grant: Grant) -> None:
    if not grant.history_shared:
        raise Unsupported(
            "Reading table by version or timestamp is not supported "
            f"because history sharing is not enabled on table {grant.table}"
        )


def _check(grant: Grant, listing: LogListing, version: int) -> None:
    if version < 0:
        raise InvalidArgument("a version must be greater than or equal to 0")
    _require_shared(grant, version)
    if version > listing.latest:
        raise InvalidArgument(
            f"version {version} of table {grant.table} is after the latest available version {listing.latest}"
        )


def _require_shared(grant: Grant, version: int) -> None:
    if version < grant.start_version:
        raise _not_shared(grant)


def _not_shared(grant: Grant) -> InvalidArgument:
    return InvalidArgument(f"You can only query table data since version {grant.start_version}")
