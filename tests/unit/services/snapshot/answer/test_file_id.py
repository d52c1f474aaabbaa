from __future__ import annotations

import hashlib
from typing import cast

import polars as pl
import pytest

from gateway.errors import InvalidArgument
from gateway.services.snapshot.answer.file_id import choose_hash, file_ids
from gateway.v1 import snapshot_pb2 as pb
from tests.cases import each_case

_PATH = "date=2021-04-28/part-00000-8b0086f2-7b27-4935-ac5a-8ed6215a6640.c000.snappy.parquet"


def test_ids_are_hashes_of_the_path_in_the_log():
    paths = pl.Series([_PATH, "größe"])

    # The first is what the reference server gives for this path.
    assert file_ids(paths, pb.FILE_ID_HASH_PARQUET).to_list() == [
        "9f1a49539c5cffe1ea7f9e055d5c003c",
        hashlib.md5("größe".encode()).hexdigest(),
    ]
    assert file_ids(paths, pb.FILE_ID_HASH_DELTA).to_list() == [
        hashlib.sha256(path.encode()).hexdigest() for path in paths
    ]


@each_case(
    ("asked", "response_format", "chosen"),
    [
        (pb.FILE_ID_HASH_UNSPECIFIED, pb.RESPONSE_FORMAT_PARQUET, pb.FILE_ID_HASH_PARQUET),
        (pb.FILE_ID_HASH_UNSPECIFIED, pb.RESPONSE_FORMAT_DELTA, pb.FILE_ID_HASH_DELTA),
        (pb.FILE_ID_HASH_PARQUET, pb.RESPONSE_FORMAT_DELTA, pb.FILE_ID_HASH_PARQUET),
        (pb.FILE_ID_HASH_DELTA, pb.RESPONSE_FORMAT_PARQUET, pb.FILE_ID_HASH_DELTA),
    ],
)
def test_the_client_chooses_the_hash_or_else_the_format_does(asked, response_format, chosen):
    assert choose_hash(asked, response_format) == chosen


def test_another_hash_is_refused():
    with pytest.raises(InvalidArgument, match="no file id hash 9"):
        choose_hash(cast("pb.FileIdHash.ValueType", 9), pb.RESPONSE_FORMAT_DELTA)
