from __future__ import annotations

import io
import json
from typing import Any

import polars as pl
import pytest

from gateway.errors import Unsupported
from gateway.services.snapshot.log.actions import read_checkpoint, read_commits
from gateway.services.snapshot.log.bounds import MAX_ROWS, Budget, find_excess, path_bytes_of
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

    with pytest.raises(
        Unsupported,
        match=r"beyond what is read: c\.parquet .* larger than 20000000 rows",
    ):
        read_checkpoint("c.parquet", content)


def test_rows_are_counted_as_they_are_read_and_not_as_the_file_claims():
    content = parquet(pl.DataFrame({"txn": range(5000)}))
    # The first of them is the file's, the others are of its parts.
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    at = content.index(b"\x16" + varint(5000), start) + 1
    claimed = content[:at] + varint(4000) + content[at + 2 :]

    assert len(varint(5000)) == len(varint(4000)) == 2
    assert pl.read_parquet(io.BytesIO(claimed)).height == 5000
    read_checkpoint("c.parquet", claimed, Budget(rows=5000))
    with pytest.raises(Unsupported, match="makes the checkpoint larger"):
        read_checkpoint("c.parquet", claimed, Budget(rows=4999))


@pytest.mark.parametrize(
    "limit", [{"rows": 3}, {"path_bytes": 3}, {"decoded": 15_000}], ids=["rows", "paths", "bytes"]
)
def test_the_files_of_a_checkpoint_have_one_budget(limit):
    budget = Budget(**limit)
    content = parquet(pl.DataFrame({"add": [{"path": "a", "size": 1}, {"path": "b", "size": 1}]}))
    read_checkpoint("c.parquet", content, budget)

    with pytest.raises(Unsupported, match=r"beyond what is read: d\.parquet makes the checkpoint larger"):
        read_checkpoint("d.parquet", content, budget)


def test_lines_of_a_checkpoint_count_as_rows():
    with pytest.raises(Unsupported, match=r"beyond what is read: c\.json makes the checkpoint larger"):
        read_checkpoint("c.json", b'{"checkpointMetadata":{"version":3}}\n{}\n{}\n', Budget(rows=2))


def test_lengths_of_paths_are_added_up_beyond_what_one_length_can_be():
    paths = pl.repeat("x" * 16_384, 262_145, eager=True).alias("path").to_frame()

    assert path_bytes_of(paths) == 16_384 * 262_145


def test_more_paths_than_any_memory_holds_are_refused():
    paths = pl.repeat("x" * 16_384, 65_537, eager=True).alias("path").to_frame()

    assert "names files by more than" in (find_excess(paths) or "")
    assert find_excess(paths.head(1000)) is None


@pytest.mark.parametrize("member", ["path", "stats", "clusteringProvider", "stats_parsed"])
def test_a_text_counts_in_each_row_that_it_is_in(member):
    text = "x" * 16_000
    values = {"numRecords": 1, "minValues": {"c": text}}
    fields = {"path": "a", "size": 1, "stats": "{}", member: values if member == "stats_parsed" else text}
    rows = pl.DataFrame({"add": [fields]}).select(pl.col("add").repeat_by(25_000).explode())
    content = parquet(rows)

    assert len(content) < 200_000
    with pytest.raises(Unsupported, match=r"beyond what is read: c\.parquet makes the checkpoint larger"):
        read_checkpoint("c.parquet", content)
    read_checkpoint("c.parquet", parquet(rows.head(1000)))


def test_typed_statistics_count_as_what_is_written_of_them():
    names = {f"{n}" * 4000: 1 for n in range(9)}
    rows = pl.DataFrame({"add": [{"path": "a", "size": 1, "stats_parsed": {"minValues": names}}]})
    many = parquet(rows.select(pl.col("add").repeat_by(20_000).explode()))

    assert read_checkpoint("c.parquet", parquet(rows)).files["stats"].str.len_bytes().item() > 36_000
    with pytest.raises(Unsupported, match=r"beyond what is read: c\.parquet makes the checkpoint larger"):
        read_checkpoint("c.parquet", many)


@pytest.mark.parametrize("kind", ["texts", "typed"])
def test_a_checkpoint_of_a_wide_table_in_which_most_is_null_is_read_however_well_it_is_packed(kind):
    counts = {f"col_{n:04}_some_name": 1_000_000 for n in range(1000)}
    said = {"numRecords": 1_000_000, "nullCount": counts}
    files = pl.DataFrame({"n": range(3000)}).select(path=pl.format("part-{}", pl.col("n").hash()), size="n")
    stats = pl.Series([json.dumps(said)]) if kind == "texts" else pl.Series([said])
    name = "stats" if kind == "texts" else "stats_parsed"
    rows = files.with_columns(stats.new_from_index(0, 3000).alias(name)).to_struct("add").to_frame()
    buffer = io.BytesIO()
    rows.write_parquet(buffer, compression="zstd", compression_level=19)

    read = read_checkpoint("c.parquet", buffer.getvalue())

    assert (read.files["stats"].str.len_bytes() > 28_000).all()


@pytest.mark.parametrize(("count", "is_read"), [(50_000, True), (100_000, False)])
def test_entries_count_however_short_they_are(count, is_read):
    tags = {f"{number:x}": "" for number in range(count)}
    content = json.dumps(add("a", tags=tags)).encode()

    assert sum(map(len, tags)) < 500_000
    if is_read:
        assert read_commits([("c.json", content)]).files.height == 1
        return
    with pytest.raises(Unsupported, match=r"c\.json says more than 1048576 bytes of one file"):
        read_commits([("c.json", content)])


def test_an_honest_checkpoint_is_far_from_what_its_size_allows():
    stats = pl.concat_str(pl.lit('{"numRecords":1,"minValues":{"a":'), pl.col("n").hash(), pl.lit("}}"))
    said = pl.struct(path=pl.format("part-{}", pl.col("n").hash()), size=pl.col("n"), stats=stats)
    rows = pl.DataFrame({"n": range(200_000)}).select(add=said)

    read = read_checkpoint("c.parquet", parquet(rows), Budget(spare=0))

    assert read.files.height == 200_000


@pytest.mark.parametrize(
    "fields",
    [
        {"path": "x" * 16_385},
        {"partitionValues": {"k": "v" * 1_100_000}},
        {"partitionValues": {"k" * 1_100_000: "v"}},
        {"partitionValues": {"k": "v" * 600_000}, "tags": {"k": "v" * 600_000}},
        {"tags": {str(n): "v" * 1000 for n in range(1100)}},
        {"deletionVector": _VECTOR},
        {"deletionVector": {**_VECTOR, "storageType": "u", "pathOrInlineDv": "v" * 16_385}},
        {"deletionVector": {**_VECTOR, "storageType": "p", "pathOrInlineDv": "v" * 16_385}},
        {"clusteringProvider": "c" * 1_100_000},
    ],
    ids=["path", "value", "name", "together", "many", "vector", "vector's name", "vector's path", "provider"],
)
def test_a_file_of_which_no_answer_can_tell_is_refused(fields):
    line = json.dumps(add(**{"path": "a", **fields})).encode()

    with pytest.raises(Unsupported, match=r"beyond what is read: c\.json .* bytes"):
        read_commits([("c.json", line)])
    with pytest.raises(Unsupported, match=r"beyond what is read: d\.json .* bytes"):
        read_checkpoint("d.json", b'{"checkpointMetadata":{"version":3}}\n' + line)


def test_a_file_of_which_much_is_said_is_read():
    fields = {"partitionValues": {"k": "v" * 600_000}, "stats": "s" * 2_000_000}
    others = [
        add("b", tags={"k": "v" * 600_000}),
        add("c", deletionVector={**_VECTOR, "pathOrInlineDv": "v" * 1_000_000}),
        add("d", deletionVector={**_VECTOR, "storageType": "p", "pathOrInlineDv": "v" * 16_384}),
    ]
    content = "\n".join(json.dumps(each) for each in (add("x" * 16_384, **fields), *others)).encode()

    assert read_commits([("c.json", content)]).files.height == 4


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
    with pytest.raises(Unsupported, match=r"beyond what is read: c\.json describes the table by more than"):
        read_commits(commit({"metaData": {**_METADATA, **fields}}))


def test_a_schema_may_be_long():
    actions = read_commits(commit({"metaData": {**_METADATA, "schemaString": "x" * 15_000_000}}))

    assert actions.metadata is not None


@pytest.mark.parametrize("kind", ["readerFeatures", "writerFeatures"])
@pytest.mark.parametrize("features", [["f"] * 1001, ["f" * 70_000]], ids=["many", "long"])
def test_features_that_no_table_has_are_refused(kind, features):
    action = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, kind: features}}

    with pytest.raises(Unsupported, match=r"beyond what is read: c\.json .* features"):
        read_commits(commit(action))
    with pytest.raises(Unsupported, match=r"beyond what is read: c\.parquet .* features"):
        read_checkpoint("c.parquet", parquet(pl.DataFrame([action])))


def test_a_thousand_features_are_read():
    action = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["f"] * 1000}}
    protocol = read_commits(commit(action)).protocol

    assert protocol is not None
    assert len(protocol.reader_features or ()) == 1000


@pytest.mark.parametrize(
    "fields",
    [
        {"partitionColumns": ["p"] * 10_001},
        {"configuration": {str(n): "" for n in range(10_001)}},
        {"format": {"provider": "parquet", "options": {str(n): "" for n in range(10_001)}}},
    ],
    ids=["partition columns", "properties", "options"],
)
def test_a_table_of_more_properties_than_any_is_refused(fields):
    with pytest.raises(Unsupported, match=r"beyond what is read: c\.json has more than 10000 partition"):
        read_commits(commit({"metaData": {**_METADATA, **fields}}))


def test_sidecars_are_known_by_name_and_bounded_by_number():
    rows = pl.DataFrame({"sidecar": [{"path": "s"}, {"path": "t"}, {"path": "s"}] * 10_000})
    many = pl.DataFrame({"sidecar": [{"path": str(n)} for n in range(10_001)]})

    assert read_checkpoint("c.parquet", parquet(rows)).sidecars == ("s", "t")
    with pytest.raises(Unsupported, match=r"c\.parquet refers to more than 10000 sidecars"):
        read_checkpoint("c.parquet", parquet(many))
