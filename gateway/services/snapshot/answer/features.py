"""Which reader features a table lists, and which of them are in use in what it holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from gateway.services.snapshot.log.fault import faulty
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.protocol import Protocol
from gateway.services.snapshot.state.files import Files
from gateway.services.snapshot.state.snapshot import Snapshot

_COLUMN_MAPPING: Final = "columnMapping"
_DELETION_VECTORS: Final = "deletionVectors"
# Column mapping came with reader version 2, a list of features by name with version 3.
_COLUMN_MAPPING_VERSION: Final = 2
FEATURES_VERSION: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Feature:
    # Tells whether a file of the table may need it.
    in_use: Callable[[Metadata], bool]
    # Tells whether the metadata calls for it; some readers refuse a protocol that does not list it then.
    is_called_for: Callable[[Metadata], bool] = lambda _: False


def used_features(protocol: Protocol, metadata: Metadata, *, has_vectors: bool) -> tuple[str, ...]:
    """Return the features that a reader has to know, as the protocol spells them.

    Those that are not known here are among them: they may change what any file means.
    """
    features = list(protocol.reader_features or ())
    if protocol.min_reader_version == _COLUMN_MAPPING_VERSION:
        features.append(_COLUMN_MAPPING)
    # Once each, however often it is listed: a look at the schema takes as long as the schema is large.
    spelled = {name.lower(): name for name in reversed(features)}
    used = [spelled[name] for name in dict.fromkeys(map(str.lower, features)) if _is_used(name, metadata)]
    if has_vectors and _DELETION_VECTORS not in used:
        used.append(_DELETION_VECTORS)
    return tuple(used)


def unknown_features(protocol: Protocol) -> tuple[str, ...]:
    """Return the reader features that this gateway cannot serve, whatever a client declares."""
    return tuple(name for name in protocol.reader_features or () if name.lower() not in _FEATURES)


def told_protocol(
    protocol: Protocol, metadata: Metadata, declared: Collection[str], *, has_vectors: bool
) -> Protocol:
    """Return the protocol without features that nothing in the table needs and the client did not declare.

    A table keeps listing what it once used, and a reader refuses a list with a name that it does not know.
    ``declared`` is in lower case.
    """
    used = used_features(protocol, metadata, has_vectors=has_vectors)
    kept = {name.lower() for name in used}.union(declared)
    dropped = {
        name
        for name in protocol.reader_features or ()
        if name.lower() not in kept and not _is_called_for(name, metadata)
    }
    return replace(
        protocol,
        reader_features=_without(protocol.reader_features, dropped),
        # A feature of readers stands in both lists or in none.
        writer_features=_without(protocol.writer_features, dropped),
    )


def holds_vectors(snapshot: Snapshot) -> bool:
    """Tell whether a live file of a version has a deletion vector, whether it is held or in an index."""
    indexed = snapshot.indexed
    return (indexed is not None and indexed.vectors > 0) or has_vectors(snapshot.files)


def has_vectors(files: Files) -> bool:
    """Tell whether a live file has a deletion vector."""
    kinds = files.frame["deletionVector"].struct.field("storageType")
    if kinds.null_count() == kinds.len():
        return False
    found = kinds.is_not_null()
    return bool((found if files.live is None else found & files.live).any())


def is_in_commit_timestamp(name: str) -> bool:
    """Tell whether a table property is about the timestamps that commits carry."""
    return name.lower().startswith(_IN_COMMIT_TIMESTAMPS)


def _without(names: tuple[str, ...] | None, dropped: Collection[str]) -> tuple[str, ...] | None:
    return None if names is None else tuple(name for name in names if name not in dropped)


def _is_used(feature: str, metadata: Metadata) -> bool:
    known = _FEATURES.get(feature.lower())
    return known is None or known.in_use(metadata)


def _is_called_for(feature: str, metadata: Metadata) -> bool:
    return _FEATURES[feature.lower()].is_called_for(metadata)


def _never(_: Metadata) -> bool:
    return False


def _has_column_mapping(metadata: Metadata) -> bool:
    return metadata.column_mapping != "none"


def _is_on(name: str) -> Callable[[Metadata], bool]:
    return lambda metadata: metadata.is_on(name)


def _schema_says(word: str) -> Callable[[Metadata], bool]:
    return lambda metadata: word in _words(metadata.schema_string)


def _words(schema_string: str) -> set[str]:
    """Return the names of the types in a schema, and the keys of its columns' metadata."""
    try:
        stack: list[Any] = [json.loads(schema_string)]
    except (ValueError, RecursionError) as exc:
        raise faulty("is damaged: its schema is not JSON") from exc
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
_IN_COMMIT_TIMESTAMPS: Final = ("delta.enableincommittimestamps", "delta.incommittimestampenablement")

_TYPE_WIDENING: Final = _Feature(
    in_use=_schema_says("delta.typeChanges"), is_called_for=_is_on("delta.enableTypeWidening")
)
_VARIANT: Final = _Feature(in_use=_schema_says("variant"))
_SHREDDING: Final = _Feature(
    in_use=_schema_says("variant"), is_called_for=_is_on("delta.enableVariantShredding")
)

# The reader features that are known, in lower case. What is not here is refused by name: so are tables
# that a catalog manages, whose latest commits may not be in the log's directory.
_FEATURES: Final[Mapping[str, _Feature]] = {
    "columnmapping": _Feature(in_use=_has_column_mapping),
    "deletionvectors": _Feature(in_use=_is_on("delta.enableDeletionVectors")),
    "timestampntz": _Feature(in_use=_schema_says("timestamp_ntz")),
    "typewidening": _TYPE_WIDENING,
    "typewidening-preview": _TYPE_WIDENING,
    "varianttype": _VARIANT,
    "varianttype-preview": _VARIANT,
    "variantshredding": _SHREDDING,
    "variantshredding-preview": _SHREDDING,
    # About the log and its upkeep: what the files mean is the same. Every reader of the delta format knows
    # the first of them.
    "v2checkpoint": _Feature(in_use=_never, is_called_for=lambda _: True),
    "vacuumprotocolcheck": _Feature(in_use=_never),
}
