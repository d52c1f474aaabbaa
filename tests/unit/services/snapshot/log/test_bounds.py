from __future__ import annotations

import io
import json
from typing import Any

import polars as pl
import pytest

from gateway.errors import Unsupported
from gateway.services.snapshot.log.actions import read_checkpoint, read_commits
from gateway.services.snapshot.log.bounds import MAX_ROWS, Budget, Crowded, find_excess, path_bytes_of
from gateway.services.snapshot.log.schema import TEXTS
from tests.builders import add
from tests.cases import each_case

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
    content = parquet(pl.DataFrame({"add": pl.repeat(None, MAX_ROWS + 1, dtype=pl.Null, eager=True)}))

    with pytest.raises(
        Unsupported,
        match=r"beyond what is read: c\.parquet .* larger than 20000000 rows",
    ):
        read_checkpoint("c.parquet", content)


def test_rows_are_counted_as_they_are_read_and_not_as_the_file_claims():
    content = parquet(pl.DataFrame({"add": pl.repeat(None, 5000, dtype=pl.Null, eager=True)}))
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
    "limit", [{"rows": 3}, {"path_bytes": 3}, {"decoded": 60_000}], ids=["rows", "paths", "bytes"]
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


def repeated(fields: dict[str, Any], count: int) -> pl.DataFrame:
    return pl.DataFrame({"add": [fields]}).select(pl.col("add").repeat_by(count).explode())


@pytest.mark.parametrize("member", ["path", "stats", "clusteringProvider"])
def test_a_text_counts_in_each_row_that_it_is_in(member):
    rows = repeated({"path": "a", "size": 1, "stats": "{}", member: "x" * 16_000}, 25_000)
    content = parquet(rows)

    assert len(content) < 200_000
    with pytest.raises(Unsupported, match=r"beyond what is read: c\.parquet makes the checkpoint larger"):
        read_checkpoint("c.parquet", content)
    read_checkpoint("c.parquet", parquet(rows.head(1000)))


# Each comes to more than a checkpoint may, as it is decoded or as it is written.
_LONG = {"numRecords": 1, "minValues": {"c": "x" * 16_000}}
_NAMES = {"minValues": {f"{n}" * 4000: 1 for n in range(9)}}


@each_case("typed", [_LONG, _NAMES], ids=["texts", "names"])
@each_case("said", [{}, {"stats": '{"numRecords":1}'}], ids=["alone", "beside a text"])
def test_typed_statistics_count_as_what_is_written_of_them_and_are_left_out_where_that_is_too_much(
    typed, said
):
    fields = {"path": "a", "size": 1, "stats_parsed": typed, **said}
    few, many = (read_checkpoint("c.parquet", parquet(repeated(fields, count))) for count in (1, 25_000))

    assert few.parsed is not None
    assert few.files["stats"].item() == said.get("stats", json.dumps(typed, separators=(",", ":")))
    assert many.parsed is None
    assert many.files.height == 25_000
    assert many.files["stats"].unique().to_list() == [said.get("stats")]


def test_typed_statistics_that_are_left_out_leave_to_the_rest_what_they_would_have_taken():
    content = parquet(repeated({"path": "a", "size": 1, "stats_parsed": _NAMES}, 25_000))
    budget = Budget(decoded=2_000_000_000)

    for name in ("c.parquet", "d.parquet", "e.parquet"):
        assert read_checkpoint(name, content, budget).files.height == 25_000
    assert budget.decoded > 1_990_000_000


def test_a_wide_table_whose_files_are_nearly_alike_is_read_without_its_typed_statistics():
    count = 100_000
    alike = pl.DataFrame({f"column_{n}": pl.repeat(float(n), count, eager=True) for n in range(200)})
    values, paths = alike.to_struct(), pl.Series([f"part-{n:08}.parquet" for n in range(count)])
    typed = pl.DataFrame({"minValues": values, "maxValues": values}).to_struct()
    said = pl.DataFrame({"path": paths, "size": pl.repeat(1, count, eager=True), "stats_parsed": typed})

    assert read_checkpoint("c.parquet", parquet(said.to_struct("add").to_frame())).files.height == count


@each_case(
    ("said", "values"),
    [
        ({"partitionValues": {"p": "1"}, "partitionValues_parsed": {"p": 1}}, {"p": "1"}),
        ({"partitionValues_parsed": {"p": 1}}, {"p": "1"}),
        ({"partitionValues": None}, {}),
        ({"partitionValues": None, "partitionValues_parsed": {"p": 1}}, None),
    ],
    ids=["texts", "typed alone", "none", "no text"],
)
def test_a_file_is_never_read_without_its_partition_values(said, values):
    rows = repeated({"path": "a", "size": 1, **said, "stats_parsed": _NAMES}, 25_000)
    if "partitionValues" in said:
        texts = pl.Series([said["partitionValues"]], dtype=TEXTS).new_from_index(0, 25_000)
        adds = rows["add"].struct.unnest().with_columns(texts.alias("partitionValues"))
        rows = adds.to_struct("add").to_frame()
    content = parquet(rows)

    if values is None:
        with pytest.raises(Unsupported, match=r"beyond what is read: c\.parquet makes the checkpoint larger"):
            read_checkpoint("c.parquet", content)
        return
    assert read_checkpoint("c.parquet", content).files["partitionValues"][0] == values


def test_a_checkpoint_that_comes_to_more_than_there_is_room_for_is_not_beyond_any_limit():
    content = parquet(repeated({"path": "a", "size": 1, "stats_parsed": _NAMES}, 1000))

    assert read_checkpoint("c.parquet", content, Budget(room=100_000_000)).files.height == 1000
    with pytest.raises(Crowded) as caught:
        read_checkpoint("c.parquet", content, Budget(room=20_000_000))
    assert 36_000_000 < caught.value.decoded < 50_000_000


@pytest.mark.slow
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


@each_case(
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


@each_case(
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


@each_case("kind", ["readerFeatures", "writerFeatures"])
@each_case("features", [["f"] * 1001, ["f" * 70_000]], ids=["many", "long"])
def test_features_that_no_table_has_are_refused(kind, features):
    action = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, kind: features}}

    with pytest.raises(Unsupported, match=r"beyond what is read: c\.json .* features"):
        read_commits(commit(action))
    with pytest.raises(Unsupported, match=r"beyond what is read: c\.parquet .* features"):
        read_checkpoint("c.parquet", parquet(pl.DataFrame([{**action, "add": None}])))


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
