"""The first two lines of every answer about a table, in the parquet response format."""

from __future__ import annotations

import json
from typing import Final

from gateway.domain.grant import Grant
from gateway.services.snapshot.state.snapshot import Snapshot

_PROTOCOL: Final = b'{"protocol":{"minReaderVersion":1}}\n'


def render_head(snapshot: Snapshot, grant: Grant, *, with_version: bool) -> bytes:
    """Return the lines, the same bytes whenever the same version is described to the same grantee."""
    metadata = snapshot.metadata
    fields = {
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "format": {"provider": metadata.provider},
        "schemaString": metadata.schema_string,
        "partitionColumns": metadata.partition_columns,
        "configuration": metadata.configuration,
        "location": grant.location.text,
        "auxiliaryLocations": [location.text for location in grant.auxiliary_locations] or None,
        "accessModes": [mode.value for mode in grant.access_modes],
        "version": snapshot.version if with_version else None,
        "size": snapshot.files.size,
        "numFiles": snapshot.files.num_files,
    }
    present = {name: value for name, value in fields.items() if value is not None}
    return _PROTOCOL + json.dumps({"metaData": present}, separators=(",", ":")).encode() + b"\n"
