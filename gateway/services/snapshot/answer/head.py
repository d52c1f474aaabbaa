"""The lines about a table itself: its protocol and its metadata, in both response formats."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from gateway.domain.grant import Grant
from gateway.services.snapshot.answer.features import (
    FEATURES_VERSION,
    holds_vectors,
    is_in_commit_timestamp,
    told_protocol,
)
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.protocol import Protocol
from gateway.services.snapshot.state.snapshot import Snapshot
from gateway.v1.snapshot_pb2 import RESPONSE_FORMAT_DELTA, ResponseFormat

# Whatever the table's log says: what the parquet format cannot express is not answered in it.
_PARQUET_PROTOCOL: Final = b'{"protocol":{"minReaderVersion":1}}\n'
# From this version on a writer looks at the list of features, and readers insist on there being one.
_WRITER_FEATURES_VERSION: Final = 7


def render_head(
    snapshot: Snapshot,
    grant: Grant,
    response_format: ResponseFormat.ValueType,
    *,
    with_version: bool,
    declared: Collection[str] = (),
) -> bytes:
    """Return the first two lines of an answer, the same bytes whenever the same client asks for a version.

    ``declared`` are the reader features that the client knows, in lower case.
    """
    protocol = told_protocol(
        snapshot.protocol, snapshot.metadata, declared, has_vectors=holds_vectors(snapshot)
    )
    return render_protocol(protocol, response_format) + render_metadata(
        snapshot.metadata,
        grant,
        response_format,
        version=snapshot.version if with_version else None,
        size=snapshot.size,
        num_files=snapshot.num_files,
    )


def render_protocol(
    protocol: Protocol, response_format: ResponseFormat.ValueType, version: int | None = None
) -> bytes:
    """Return the line of a protocol; its version, where it is asked for, stands in the delta format only."""
    if response_format != RESPONSE_FORMAT_DELTA:
        return _PARQUET_PROTOCOL
    fields = {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "readerFeatures": _listed(
            protocol.reader_features, due=protocol.min_reader_version >= FEATURES_VERSION
        ),
        "writerFeatures": _listed(
            protocol.writer_features, due=protocol.min_writer_version >= _WRITER_FEATURES_VERSION
        ),
    }
    return _line("protocol", {"deltaProtocol": _present(fields), "version": version})


def render_metadata(
    metadata: Metadata,
    grant: Grant,
    response_format: ResponseFormat.ValueType,
    *,
    version: int | None = None,
    size: int | None = None,
    num_files: int | None = None,
) -> bytes:
    """Return the line of a metadata action, of the version that it is from where that is asked for."""
    sharing = {
        "location": grant.location.text,
        "auxiliaryLocations": [location.text for location in grant.auxiliary_locations] or None,
        "accessModes": [mode.value for mode in grant.access_modes],
        "version": version,
        "size": size,
        "numFiles": num_files,
    }
    if response_format == RESPONSE_FORMAT_DELTA:
        return _line("metaData", {**sharing, "deltaMetadata": _present(_delta_fields(metadata))})
    return _line("metaData", {**_fields(metadata), **sharing})


def _fields(metadata: Metadata) -> dict[str, Any]:
    return {
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "format": {"provider": metadata.provider},
        "schemaString": metadata.schema_string,
        "partitionColumns": metadata.partition_columns,
        "configuration": metadata.configuration,
    }


def _delta_fields(metadata: Metadata) -> dict[str, Any]:
    # The log that a client makes of the answer has no commit's own words, and a reader that is told to
    # look for a timestamp in them fails: the timestamp of a version is on its lines.
    configuration = {
        name: value for name, value in metadata.configuration.items() if not is_in_commit_timestamp(name)
    }
    return {
        **_fields(metadata),
        # Readers insist on the options, empty as they are.
        "format": {"provider": metadata.provider, "options": dict(metadata.format_options)},
        "configuration": configuration,
        "createdTime": metadata.created_time,
    }


def _listed(features: tuple[str, ...] | None, *, due: bool) -> list[str] | None:
    # Readers refuse a list that the version has no place for, even an empty one, and miss one that is due.
    return list(features or ()) if due else None


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _line(kind: str, fields: Mapping[str, Any]) -> bytes:
    return json.dumps({kind: _present(fields)}, separators=(",", ":")).encode() + b"\n"
