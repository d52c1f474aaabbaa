"""The one response format that all changes of a range can be told in."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from gateway.domain.grant import Grant
from gateway.services.snapshot.answer.negotiation import choose_format
from gateway.services.snapshot.changes.table_state import TableState
from gateway.services.snapshot.log.actions import NO_FILES
from gateway.services.snapshot.log.listing import LogListing
from gateway.services.snapshot.state.files import Files
from gateway.services.snapshot.state.snapshot import Snapshot
from gateway.v1 import snapshot_pb2 as pb


def choose_change_format(
    states: Sequence[TableState],
    vector: pl.DataFrame | None,
    capabilities: pb.ReaderCapabilities,
    grant: Grant,
    listing: LogListing,
) -> pb.ResponseFormat.ValueType:
    """Return the format; raise ``Unsupported`` when the client cannot read one of the states in any."""
    files = (
        NO_FILES if vector is None else pl.concat([NO_FILES, vector], how="diagonal").select(NO_FILES.columns)
    )
    tables = [
        Snapshot(
            version=state.version,
            protocol=state.protocol,
            metadata=state.metadata,
            files=Files(frame=files, num_files=files.height, size=0),
            anchor=listing.commits[state.version],
        )
        for state in states
    ]
    chosen = {choose_format(table, capabilities, grant, discovery=False) for table in tables}
    if len(chosen) == 1:
        return chosen.pop()
    # What one of them needs, all must be told in.
    delta = pb.ReaderCapabilities(
        response_formats=[pb.RESPONSE_FORMAT_DELTA], reader_features=capabilities.reader_features
    )
    for table in tables:
        choose_format(table, delta, grant, discovery=False)
    return pb.RESPONSE_FORMAT_DELTA
