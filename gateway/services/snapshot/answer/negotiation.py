"""In which format a table is answered, by what its files need and what the client can read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.domain.grant import Grant
from gateway.errors import Unsupported
from gateway.services.snapshot.answer.features import (
    FEATURES_VERSION,
    holds_vectors,
    unknown_features,
    used_features,
)
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.protocol import Protocol
from gateway.services.snapshot.state.snapshot import Snapshot
from gateway.v1 import snapshot_pb2 as pb

_MAX_NAMES: Final = 16
_MAX_NAME: Final = 64


def choose_format(
    snapshot: Snapshot, capabilities: pb.ReaderCapabilities, grant: Grant, *, discovery: bool
) -> pb.ResponseFormat.ValueType:
    """Return the format of an answer, or raise ``Unsupported`` with the header that would get one.

    To a client that takes the delta format, a discovery is answered whatever it declares: the protocol in
    that answer is how it learns what to declare.
    """
    require_known(snapshot.protocol, snapshot.metadata, grant)
    used = used_features(snapshot.protocol, snapshot.metadata, has_vectors=holds_vectors(snapshot))
    formats = capabilities.response_formats
    if pb.RESPONSE_FORMAT_DELTA not in formats:
        _require_none(used, grant)
        return pb.RESPONSE_FORMAT_PARQUET
    if pb.RESPONSE_FORMAT_PARQUET in formats and not used:
        return pb.RESPONSE_FORMAT_PARQUET
    if not discovery:
        require_declared(used, capabilities, grant)
    return pb.RESPONSE_FORMAT_DELTA


def require_known(protocol: Protocol, metadata: Metadata, grant: Grant) -> None:
    """Raise ``Unsupported`` when the gateway itself cannot tell what the table's files mean."""
    if metadata.provider.lower() != "parquet":
        raise Unsupported(f"table {grant.table} has files in a format other than parquet")
    if protocol.min_reader_version > FEATURES_VERSION:
        raise Unsupported(
            f"table {grant.table} needs a reader of version {protocol.min_reader_version}, "
            f"and versions up to {FEATURES_VERSION} are supported"
        )
    if unknown := unknown_features(protocol):
        raise Unsupported(
            f"Unsupported Delta Table Properties: table {grant.table} has the reader features "
            f"{_listed(unknown)}, which this gateway cannot serve in any response format"
        )


def require_declared(used: Sequence[str], capabilities: pb.ReaderCapabilities, grant: Grant) -> None:
    """Raise ``Unsupported`` when the table uses a reader feature that the client did not declare."""
    if missing := [name for name in used if name.lower() not in capabilities.reader_features]:
        raise Unsupported(
            f"Unsupported Delta Table Properties: table {grant.table} uses {', '.join(missing)}, which the "
            f"request does not declare; a client that can read them sends {_header(used)}"
        )


def _require_none(used: Sequence[str], grant: Grant) -> None:
    if used:
        raise Unsupported(
            f"Unsupported Delta Table Properties: table {grant.table} uses {', '.join(used)}, which the "
            f"parquet response format cannot express; a client that can read them sends {_header(used)}"
        )


def _listed(names: Sequence[str]) -> str:
    """Return names for a message, which is as long as somebody reads it, whatever the log has."""
    shown = [name[:_MAX_NAME] for name in names[:_MAX_NAMES]]
    more = len(names) - len(shown)
    return f"{', '.join(shown)} and {more} others" if more else ", ".join(shown)


def _header(used: Sequence[str]) -> str:
    names = ",".join(name.lower() for name in used)
    return f"delta-sharing-capabilities: responseformat=delta;readerfeatures={names}"
