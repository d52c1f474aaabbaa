"""What is asked of a table's changes, and of what."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.domain.grant import Grant
from gateway.services.snapshot.changes.reading import ChangeRange
from gateway.services.snapshot.log.history import History
from gateway.services.snapshot.log.listing import LogListing
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.store import SnapshotStore
from gateway.v1 import snapshot_pb2 as pb


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCursor:
    """The first file of a range that is still to come: a version, and its place among what is told of it."""

    version: int
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesAsked:
    """A request, and the part of its answer that is wanted."""

    versions: ChangeRange
    capabilities: pb.ReaderCapabilities
    file_id_hash: pb.FileIdHash.ValueType
    # Both about versions after the first; the protocol in the delta format only.
    with_metadata: bool = False
    with_protocol: bool = False
    # None: from the beginning.
    start: ChangeCursor | None = None
    # None: to the end.
    max_files: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSource:
    """A granted table, and its whole log as it was listed for the request."""

    log: TableLog
    store: SnapshotStore = field(repr=False)
    listing: LogListing = field(repr=False)
    # None when no commit tells when it was made.
    history: History | None = field(repr=False)
    grant: Grant
