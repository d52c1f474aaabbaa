"""Which tables the parquet response format can serve."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from gateway.errors import Unsupported
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.state.snapshot import Snapshot

_COLUMN_MAPPING: Final = "columnMapping"
_DELETION_VECTORS: Final = "deletionVectors"
# Column mapping came with reader version 2, a list of features by name with version 3.
_COLUMN_MAPPING_VERSION: Final = 2
_FEATURES_VERSION: Final = 3


def require_parquet(snapshot: Snapshot, table: str) -> None:
    """Raise ``Unsupported`` when a client of the parquet format would misread the table."""
    if snapshot.metadata.provider.lower() != "parquet":
        raise Unsupported(f"table {table} has files in a format other than parquet")
    if snapshot.protocol.min_reader_version > _FEATURES_VERSION:
        raise Unsupported(
            f"table {table} needs a reader of version {snapshot.protocol.min_reader_version}, "
            f"and versions up to {_FEATURES_VERSION} are supported"
        )
    if used := _used_features(snapshot):
        raise Unsupported(
            f"Unsupported Delta Table Properties: table {table} uses {', '.join(used)}, which the parquet "
            "response format cannot express; it takes responseformat=delta, which is not supported yet"
        )


def _used_features(snapshot: Snapshot) -> list[str]:
    features = list(snapshot.protocol.reader_features or ())
    if snapshot.protocol.min_reader_version == _COLUMN_MAPPING_VERSION:
        features.append(_COLUMN_MAPPING)
    used = [feature for feature in features if _is_used(feature, snapshot.metadata)]
    if (
        snapshot.files.frame["deletionVector"].struct.field("storageType").is_not_null().any()
        and _DELETION_VECTORS not in used
    ):
        used.append(_DELETION_VECTORS)
    return used


def _is_used(feature: str, metadata: Metadata) -> bool:
    test = _IN_USE.get(feature.lower())
    # A feature that is not known may change what any file means.
    return test is None or test(metadata)


def _has_deletion_vectors(metadata: Metadata) -> bool:
    return metadata.configuration.get("delta.enableDeletionVectors", "").lower() == "true"


def _has_column_mapping(metadata: Metadata) -> bool:
    return metadata.configuration.get("delta.columnMapping.mode", "none").lower() != "none"


def _schema_says(word: str) -> Callable[[Metadata], bool]:
    return lambda metadata: word in _words(metadata.schema_string)


def _words(schema_string: str) -> set[str]:
    """Return the names of the types in a schema, and the keys of its columns' metadata."""
    try:
        stack: list[Any] = [json.loads(schema_string)]
    except (ValueError, RecursionError) as exc:
        raise Unsupported("the table's log is damaged: its schema is not JSON") from exc
    words: set[str] = set()
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, dict):
            words.update(value for key, value in node.items() if key in _TYPE_KEYS and isinstance(value, str))
            words.update(node["metadata"] if isinstance(node.get("metadata"), dict) else ())
            stack.extend(value for key, value in node.items() if key != "metadata")
    return words


_TYPE_KEYS: Final = frozenset({"type", "elementType", "keyType", "valueType"})

# How to tell whether a feature that the protocol lists is used by what the table holds.
_IN_USE: Final[Mapping[str, Callable[[Metadata], bool]]] = {
    "columnmapping": _has_column_mapping,
    "deletionvectors": _has_deletion_vectors,
    "timestampntz": _schema_says("timestamp_ntz"),
    "typewidening": _schema_says("delta.typeChanges"),
    "typewidening-preview": _schema_says("delta.typeChanges"),
    "varianttype": _schema_says("variant"),
    "varianttype-preview": _schema_says("variant"),
    # About the log and its upkeep: what the files mean is the same.
    "v2checkpoint": lambda _: False,
    "vacuumprotocolcheck": lambda _: False,
}
