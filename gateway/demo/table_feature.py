"""Features of Delta tables: what the protocol and the configuration of a table with them say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_READER_VERSION: Final = 3
_WRITER_VERSION: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFeature:
    """Whether a reader must know it, and what turns it on."""

    for_readers: bool
    configuration: Mapping[str, str] = field(default_factory=dict)


FEATURES: Final[Mapping[str, TableFeature]] = {
    "changeDataFeed": TableFeature(for_readers=False, configuration={"delta.enableChangeDataFeed": "true"}),
    "columnMapping": TableFeature(for_readers=True, configuration={"delta.columnMapping.mode": "name"}),
    "deletionVectors": TableFeature(for_readers=True, configuration={"delta.enableDeletionVectors": "true"}),
    "inCommitTimestamp": TableFeature(
        for_readers=False, configuration={"delta.enableInCommitTimestamps": "true"}
    ),
    "timestampNtz": TableFeature(for_readers=True),
    "typeWidening": TableFeature(for_readers=True, configuration={"delta.enableTypeWidening": "true"}),
    "v2Checkpoint": TableFeature(for_readers=True, configuration={"delta.checkpointPolicy": "v2"}),
    "vacuumProtocolCheck": TableFeature(for_readers=True),
}


def with_features(*names: str) -> dict[str, Any]:
    """Return the protocol and the metadata that a ``TableBuilder`` takes for a table with these features."""
    return {"protocol": protocol_of(*names), "metadata": {"configuration": configuration_of(*names)}}


def protocol_of(*names: str) -> dict[str, Any]:
    reader = [name for name in names if FEATURES[name].for_readers]
    # A table that asks nothing of readers has no list for them.
    return {
        "minReaderVersion": _READER_VERSION if reader else 1,
        "minWriterVersion": _WRITER_VERSION,
        **({"readerFeatures": reader} if reader else {}),
        "writerFeatures": list(names),
    }


def configuration_of(*names: str) -> dict[str, str]:
    return {key: value for name in names for key, value in FEATURES[name].configuration.items()}
