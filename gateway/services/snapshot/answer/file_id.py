"""Ids of files: hashes of the paths in the log, the same in every answer of every process."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import polars as pl

from gateway.errors import InvalidArgument
from gateway.v1 import snapshot_pb2 as pb


def delta_file_id(path: bytes) -> str:
    return hashlib.sha256(path).hexdigest()


def choose_hash(
    file_id_hash: pb.FileIdHash.ValueType, response_format: pb.ResponseFormat.ValueType
) -> pb.FileIdHash.ValueType:
    """Return which hash the ids of an answer are: that of its format, unless the client chose another."""
    if file_id_hash == pb.FILE_ID_HASH_UNSPECIFIED:
        is_delta = response_format == pb.RESPONSE_FORMAT_DELTA
        return pb.FILE_ID_HASH_DELTA if is_delta else pb.FILE_ID_HASH_PARQUET
    if file_id_hash not in _HASHES:
        raise InvalidArgument(f"there is no file id hash {file_id_hash}")
    return file_id_hash


def file_ids(paths: pl.Series, file_id_hash: pb.FileIdHash.ValueType) -> pl.Series:
    """Return the id of each path, as the log spells it."""
    digest = _HASHES[file_id_hash]
    return pl.Series([digest(path).hexdigest() for path in paths.cast(pl.Binary).to_list()], dtype=pl.String)


_HASHES: Final[Mapping[pb.FileIdHash.ValueType, Callable[[bytes], Any]]] = {
    pb.FILE_ID_HASH_PARQUET: partial(hashlib.md5, usedforsecurity=False),
    pb.FILE_ID_HASH_DELTA: hashlib.sha256,
}
