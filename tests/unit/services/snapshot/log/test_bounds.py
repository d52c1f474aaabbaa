from __future__ import annotations

import io
import json
from typing import Any

import polars as pl
import pytest

from gateway.errors import Unsupported
from gateway.services.snapshot.log.actions import read_checkpoint, read_commits
from gateway.services.snapshot.log.bounds import MAX_ROWS, Budget, count_rows, path_bytes_of
from tests.builders import add

_VECTOR = {"storageType": "i", "pathOrInlineDv": "v" * 1_100_000, "sizeInBytes": 1, "cardinality": 1}
_METADATA = {"id": "t", "schemaString": "{}", "configuration": {}}


def parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def commit(action: dict[str, Any]) -> list[tuple[str, bytes]]:
    return [("c.json", json.dumps(action).encode())]


def adds(**fields: Any) -> bytes:
    return parquet(pl.DataFrame({"add": [{"path": "a", "size": 1, **fields}]}))


def varint(number: int) -> bytes:
    """Return a number as the footer of a parquet file has it."""
    rest, spelled = number * 2, b""
    while rest > 127:
        spelled, rest = spelled + bytes([rest & 127 | 128]), rest >> 7
    return spelled + bytes([rest])


def test_a_checkpoint_of_more_rows_than_any_is_refused_by_name():
    content = parquet(pl.DataFrame({"txn": pl.repeat(None, MAX_ROWS + 1, dtype=pl.Null, eager=True)}))

    with pytest.raises(Unsupported, match=r"log is damaged: c\.parquet makes the checkpoint larger than"):
        read_checkpoint("c.parquet", content)


def test_rows_are_counted_as_they_are_read_and_not_as_the_file_claims():
    content = parquet(pl.DataFrame({"a": range(5000)}))
    # The first of them is the file's, the others are of its parts.
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    at = content.index(b"\x16" + varint(5000), start) + 1
    claimed = content[:at] + varint(4000) + content[at + 2 :]

    assert len(varint(5000)) == len(varint(4000)) == 2
    assert pl.read_parquet(io.BytesIO(claimed)).height == 5000
    assert count_rows(claimed) == 5000


@pytest.mark.parametrize("budget", [Budget(rows=3), Budget(path_bytes=3)], ids=["rows", "paths"])
def test_the_files_of_a_checkpoint_have_one_budget(budget):
    content = parquet(pl.DataFrame({"add": [{"path": "a", "size": 1}, {"path": "b", "size": 1}]}))
    read_checkpoint("c.parquet", content, budget)

    with pytest.raises(Unsupported, match=r"log is damaged: d\.parquet makes the checkpoint larger"):
        read_checkpoint("d.parquet", content, budget)


def test_lines_of_a_checkpoint_count_as_rows():
    with pytest.raises(Unsupported, match=r"log is damaged: c\.json makes the checkpoint larger"):
        read_checkpoint("c.json", b'{"checkpointMetadata":{"version":3}}\n{}\n{}\n', Budget(rows=2))


def test_lengths_of_paths_are_added_up_beyond_what_one_length_can_be():
    paths = pl.repeat("x" * 16_384, 262_145, eager=True).alias("path").to_frame()

    assert path_bytes_of(paths) == 16_384 * 262_145


def test_more_paths_than_any_memory_holds_are_refused():
    path = pl.repeat("x" * 16_384, 65_537, eager=True).alias("path")
    content = parquet(
        pl.DataFrame([path, pl.repeat(1, 65_537, eager=True).alias("size")]).to_struct("add").to_frame()
    )

    with pytest.raises(Unsupported, match=r"log is damaged: c\.parquet names files by more than"):
        read_checkpoint("c.parquet", content)


@pytest.mark.parametrize(
    "fields",
    [
        {"path": "x" * 16_385},
        {"partitionValues": {"k": "v" * 1_100_000}},
        {"partitionValues": {"k" * 1_100_000: "v"}},
        {"partitionValues": {"k": "v" * 600_000}, "tags": {"k": "v" * 600_000}},
        {"tags": {str(n): "v" * 1000 for n in range(1100)}},
        {"deletionVector": _VECTOR},
        {"clusteringProvider": "c" * 1_100_000},
    ],
    ids=["path", "value", "name", "together", "many", "vector", "provider"],
)
def test_a_file_of_which_no_answer_can_tell_is_refused(fields):
    line = json.dumps(add(**{"path": "a", **fields})).encode()

    with pytest.raises(Unsupported, match=r"log is damaged: c\.json .* bytes"):
        read_commits([("c.json", line)])
    with pytest.raises(Unsupported, match=r"log is damaged: d\.json .* bytes"):
        read_checkpoint("d.json", b'{"checkpointMetadata":{"version":3}}\n' + line)


def test_a_file_of_which_much_is_said_is_read():
    fields = {"partitionValues": {"k": "v" * 600_000}, "stats": "s" * 2_000_000}
    others = add("b", tags={"k": "v" * 600_000})
    content = "\n".join(json.dumps(each) for each in (add("x" * 16_384, **fields), others)).encode()

    assert read_commits([("c.json", content)]).files.height == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"schemaString": "x" * 17_000_000},
        {"configuration": {"k": "v" * 17_000_000}},
        # Six times as long in an answer.
        {"configuration": {"k": "\x01" * 3_000_000}},
        {"description": "é" * 9_000_000},
    ],
    ids=["schema", "configuration", "escaped", "description"],
)
def test_metadata_that_no_answer_can_hold_is_refused(fields):
    with pytest.raises(Unsupported, match=r"log is damaged: c\.json describes the table by more than"):
        read_commits(commit({"metaData": {**_METADATA, **fields}}))


def test_a_schema_may_be_long():
    actions = read_commits(commit({"metaData": {**_METADATA, "schemaString": "x" * 15_000_000}}))

    assert actions.metadata is not None
