"""The lines of answers about a fake table, in both response formats."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gateway.v1 import snapshot_pb2 as pb
from tests.fakes.page import EXPIRATION, FILE_SIZE, url_of
from tests.fakes.world import FakeTable

Line = dict[str, Any]

_SCHEMA = json.dumps(
    {"type": "struct", "fields": [{"name": "n", "type": "long", "nullable": True, "metadata": {}}]}
)
_STATS = '{"numRecords":1}'
_HOUR_MS = 3_600_000
# What the versions of a table with a change feed hold; version 4 has other metadata instead.
_STORY: dict[int, tuple[str, ...]] = {
    1: ("add", "add"),
    2: ("add", "remove", "cdf"),
    3: ("add", "remove", "cdf"),
    5: ("add",),
}
_METADATA_VERSION = 4


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Renders a table in one format, with ids of one scheme."""

    table: FakeTable
    response_format: pb.ResponseFormat.ValueType
    file_id_hash: pb.FileIdHash.ValueType

    @property
    def is_delta(self) -> bool:
        return self.response_format == pb.RESPONSE_FORMAT_DELTA

    def head(self, version: int | None = None, *, with_protocol_version: bool = False) -> bytes:
        """Return protocol and metadata; they name the version where one was asked for."""
        protocol = self.protocol(version if with_protocol_version else None)
        return "".join(f"{json.dumps(line)}\n" for line in (protocol, self.metadata(version))).encode()

    def protocol(self, version: int | None = None) -> Line:
        plain: Line = {"minReaderVersion": 1, "minWriterVersion": 4}
        features = ["deletionVectors"]
        vectors = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": features,
            "writerFeatures": features,
        }
        if not self.is_delta:
            return {"protocol": {"minReaderVersion": 1}}
        shown: Line = {"deltaProtocol": vectors if self.table.vectors else plain}
        return {"protocol": shown if version is None else shown | {"version": version}}

    def metadata(self, version: int | None = None) -> Line:
        table = self.table
        own: Line = {
            "id": f"delta-{table.id}",
            "format": {"provider": "parquet"},
            "schemaString": _SCHEMA,
            "partitionColumns": [],
        }
        if table.change_feed:
            own["configuration"] = {"delta.enableChangeDataFeed": "true"}
        ours: Line = {
            "location": table.location,
            "accessModes": list(table.access_modes),
            "size": table.files * FILE_SIZE,
            "numFiles": table.files,
        }
        if version is not None:
            ours["version"] = version
        if table.auxiliary_locations:
            ours["auxiliaryLocations"] = list(table.auxiliary_locations)
        return {"metaData": {"deltaMetadata": own} | ours if self.is_delta else own | ours}

    def file(self, path: str, version: int | None = None) -> Line:
        """Return a file of a snapshot; of the latest one without its version."""
        return self._action("file", path, version, has_vector=self.table.vectors and path == self._path(0))

    def files(self) -> list[str]:
        return [self._path(number) for number in range(self.table.files)]

    def changes(self, first: int, last: int, *, feed: bool) -> Iterator[tuple[int, int, Line]]:
        """Return the files of versions, each with its version and place: changed rows, or changed files."""
        for version in range(first, last + 1):
            kinds = self._story().get(version, ())
            told = ("cdf",) if feed and "cdf" in kinds else tuple(kind for kind in kinds if kind != "cdf")
            for index, kind in enumerate(told):
                yield version, index, self._action(kind, f"v{version}-{index}-{kind}.parquet", version)

    def historical(self, first: int, last: int) -> Iterator[tuple[int, Line]]:
        """Return the metadata of versions after the first that have other metadata."""
        if self.table.change_feed and first < _METADATA_VERSION <= last:
            yield _METADATA_VERSION, self.metadata(_METADATA_VERSION)

    def _story(self) -> dict[int, tuple[str, ...]]:
        if self.table.change_feed:
            return _STORY
        half = self.table.files // 2
        return {0: ("add",) * half, self.table.version: ("add",) * (self.table.files - half)}

    def _action(self, kind: str, path: str, version: int | None, *, has_vector: bool = False) -> Line:
        when = {} if version is None else {"version": version, "timestamp": version * _HOUR_MS}
        ours: Line = {"id": self._id(path), **when, "expirationTimestamp": EXPIRATION}
        if not self.is_delta:
            stats = {"stats": _STATS} if kind in {"file", "add"} else {}
            plain = {"url": url_of(path), "partitionValues": {}, "size": FILE_SIZE, **stats}
            return {kind: plain | ours}
        if has_vector:
            ours["deletionVectorFileId"] = self._id("vector.bin")
        return {"file": ours | {"deltaSingleAction": _delta_action(kind, path, has_vector=has_vector)}}

    def _path(self, number: int) -> str:
        return f"part-{number:05}.parquet"

    def _id(self, path: str) -> str:
        scheme = self.file_id_hash or (pb.FILE_ID_HASH_DELTA if self.is_delta else pb.FILE_ID_HASH_PARQUET)
        digest = hashlib.sha256 if scheme == pb.FILE_ID_HASH_DELTA else hashlib.md5
        return digest(path.encode()).hexdigest()


def _delta_action(kind: str, path: str, *, has_vector: bool) -> Line:
    action: Line = {"path": url_of(path), "partitionValues": {}, "size": FILE_SIZE, "dataChange": True}
    if kind == "cdf":
        return {"cdc": action | {"dataChange": False}}
    if kind == "remove":
        return {"remove": action | {"deletionTimestamp": 0, "extendedFileMetadata": True}}
    action |= {"modificationTime": 0, "stats": _STATS}
    if has_vector:
        action["deletionVector"] = {
            "storageType": "p",
            "pathOrInlineDv": url_of("vector.bin"),
            "offset": 1,
            "sizeInBytes": 34,
            "cardinality": 1,
        }
    return {"add": action}
