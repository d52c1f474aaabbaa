"""The lines of files: what stands in them in each format, and where their holes are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

import polars as pl

from gateway.errors import Unsupported
from gateway.services.snapshot.answer.deletion_vector import Vectors
from gateway.services.snapshot.answer.file_id import choose_hash, file_ids
from gateway.services.snapshot.answer.members import render_members, to_ascii
from gateway.v1.snapshot_pb2 import (
    FILE_ID_HASH_UNSPECIFIED,
    HOLE_EXPIRATION,
    HOLE_URL,
    RESPONSE_FORMAT_DELTA,
    FileIdHash,
    ResponseFormat,
)

# Statistics are optional; longer ones would not fit into a message with the escapes that they may need.
MAX_STATS_BYTES: Final = 256 * 1024


class ActionKind(Enum):
    """What a file is in an answer: one of a version, or a change."""

    FILE = "file"
    ADD = "add"
    REMOVE = "remove"
    CDF = "cdf"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """How the lines of one answer are written."""

    response_format: ResponseFormat.ValueType
    file_id_hash: FileIdHash.ValueType = FILE_ID_HASH_UNSPECIFIED
    # Both are given in answers to queries by version or timestamp, and with changes.
    version: int | None = None
    timestamp: int | None = None

    @property
    def is_delta(self) -> bool:
        return self.response_format == RESPONSE_FORMAT_DELTA


@dataclass(frozen=True, slots=True, kw_only=True)
class Holes:
    """Where in a line something goes, in order, and what: a byte for each."""

    offsets: tuple[int, ...]
    kinds: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Lines without what goes into their holes."""

    texts: pl.Series = field(repr=False)
    # Of a line with one URL, that of its file.
    holes: Holes
    # Of a line that has a deletion vector's URL too, and which lines those are; None: there is none.
    vector_holes: Holes | None = None
    has_vector_url: pl.Series | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fields:
    """Which columns of an action are in a line."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()


def render_lines(rows: pl.DataFrame, kind: ActionKind, line: LineFormat, vectors: Vectors | None) -> Lines:
    """Return a line for each row."""
    rows = _checked(rows, kind)
    ids = file_ids(rows["path"], choose_hash(line.file_id_hash, line.response_format))
    fields = _DELTA[kind] if line.is_delta else _PARQUET[kind]
    members = render_members(rows, fields.required, fields.optional)
    if line.is_delta:
        return _delta_lines(_at(line), _DELTA_ACTIONS[kind], ids, members, vectors)
    if vectors is not None:
        raise Unsupported("the parquet response format cannot express deletionVectors, which the table uses")
    return _parquet_lines(_at(line), kind.value, ids, members)


def _parquet_lines(at: str, action: str, ids: pl.Series, members: pl.Series) -> Lines:
    head, id_head, middle = f'{{"{action}":{{"url":"', '","id":"', f'"{at},"expirationTimestamp":'
    texts = pl.concat_str(pl.lit(head + id_head), ids, pl.lit(f"{middle},"), members, pl.lit("}\n"))
    expiration = len(head + id_head + middle) + _width(ids)
    holes = Holes(offsets=(len(head), expiration), kinds=bytes([HOLE_URL, HOLE_EXPIRATION]))
    return Lines(texts=to_ascii(pl.select(texts).to_series()), holes=holes)


def _delta_lines(at: str, action: str, ids: pl.Series, members: pl.Series, vectors: Vectors | None) -> Lines:
    head, middle = '{"file":{"id":"', f'{at},"expirationTimestamp":'
    path = f',"deltaSingleAction":{{"{action}":{{"path":"'
    # A vector stands right behind the path, so that no hole comes after a text of any length.
    vector = None if vectors is None else _vector_texts(vectors, ids.len())
    parts = [pl.lit(head), ids, pl.lit('"'), pl.lit(f'{middle}{path}",'), members, pl.lit("}}}\n")]
    if vector is not None:
        parts[3:4] = [vector["id"], parts[3], vector["text"]]
    expiration = len(f'{head}"{middle}') + _width(ids)
    offsets = (expiration, expiration + len(path))
    texts = to_ascii(pl.select(pl.concat_str(parts)).to_series())
    holes = Holes(offsets=offsets, kinds=bytes([HOLE_EXPIRATION, HOLE_URL]))
    if vector is None:
        return Lines(texts=texts, holes=holes)
    url = offsets[-1] + len(f'",{_VECTOR_IN_FILE}')
    wider = tuple(offset + _VECTOR_ID_WIDTH for offset in (*offsets, url))
    in_file = Holes(offsets=wider, kinds=bytes([HOLE_EXPIRATION, HOLE_URL, HOLE_URL]))
    return Lines(texts=texts, holes=holes, vector_holes=in_file, has_vector_url=vector["id"] != "")


def _width(ids: pl.Series) -> int:
    # Ids of one hash have all one length.
    return len(ids[0]) if ids.len() else 0


def _vector_texts(vectors: Vectors, height: int) -> pl.DataFrame:
    """Return for each line the member with the id of its vector's file, and that with the vector; or nothing.

    The vector's text has no width where its URL goes.
    """
    sizes = render_members(vectors.frame, ("sizeInBytes", "cardinality"), ("offset",))
    inline = render_members(
        vectors.frame, ("storageType", "pathOrInlineDv", "sizeInBytes", "cardinality"), ("offset",)
    )
    in_file = pl.col("id").is_not_null()
    file_id = pl.concat_str(pl.lit(_VECTOR_ID), "id", pl.lit('"'))
    texts = vectors.frame.select(
        pl.when(in_file).then(file_id).otherwise(pl.lit("")).alias("id"),
        pl.when(in_file)
        .then(pl.concat_str(pl.lit(f'{_VECTOR_IN_FILE}",'), sizes, pl.lit(",")))
        .otherwise(pl.concat_str(pl.lit('"deletionVector":{'), inline, pl.lit(",")))
        .alias("text"),
    )
    return pl.DataFrame(
        {
            name: pl.repeat("", height, dtype=pl.String, eager=True).scatter(vectors.rows, texts[name])
            for name in ("id", "text")
        }
    )


def _at(line: LineFormat) -> str:
    version = "" if line.version is None else f',"version":{line.version}'
    timestamp = "" if line.timestamp is None else f',"timestamp":{line.timestamp}'
    return version + timestamp


def _checked(rows: pl.DataFrame, kind: ActionKind) -> pl.DataFrame:
    """Return rows with what clients insist on, and without statistics that are too long."""
    if rows["partitionValues"].has_nulls() or not (rows["size"] >= 0).fill_null(value=False).all():
        raise Unsupported(
            "the log does not say the size and the partition values of a file that was removed: "
            "the changes of its version cannot be served"
        )
    filled = [pl.col("dataChange").fill_null(value=kind is not ActionKind.CDF)]
    if "modificationTime" in rows.columns:
        filled.append(pl.col("modificationTime").fill_null(0))
    if "stats" in rows.columns:
        filled.append(
            pl.when(pl.col("stats").str.len_bytes() <= MAX_STATS_BYTES).then("stats").alias("stats")
        )
    return rows.with_columns(filled)


_VECTOR_ID: Final = ',"deletionVectorFileId":"'
_VECTOR_ID_WIDTH: Final = len(f'{_VECTOR_ID}"') + 64
_VECTOR_IN_FILE: Final = '"deletionVector":{"storageType":"p","pathOrInlineDv":"'

_ALWAYS: Final = ("partitionValues", "size")
_PARQUET: Final[Mapping[ActionKind, _Fields]] = {
    ActionKind.FILE: _Fields(required=_ALWAYS, optional=("stats",)),
    ActionKind.ADD: _Fields(required=_ALWAYS, optional=("stats",)),
    ActionKind.REMOVE: _Fields(required=_ALWAYS),
    ActionKind.CDF: _Fields(required=_ALWAYS),
}

_ROW_IDS: Final = ("baseRowId", "defaultRowCommitVersion")
_DELTA_ADD: Final = _Fields(
    required=(*_ALWAYS, "modificationTime", "dataChange"),
    optional=("stats", "tags", *_ROW_IDS, "clusteringProvider"),
)
_DELTA_REMOVE: Final = _Fields(
    required=(*_ALWAYS, "dataChange"),
    optional=("deletionTimestamp", "extendedFileMetadata", "stats", "tags", *_ROW_IDS),
)
_DELTA: Final[Mapping[ActionKind, _Fields]] = {
    ActionKind.FILE: _DELTA_ADD,
    ActionKind.ADD: _DELTA_ADD,
    ActionKind.REMOVE: _DELTA_REMOVE,
    ActionKind.CDF: _Fields(required=(*_ALWAYS, "dataChange"), optional=("tags",)),
}
_DELTA_ACTIONS: Final[Mapping[ActionKind, str]] = {
    ActionKind.FILE: "add",
    ActionKind.ADD: "add",
    ActionKind.REMOVE: "remove",
    ActionKind.CDF: "cdc",
}
