from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from urllib.parse import unquote

import polars as pl

from gateway.demo.sample_tables import ODD_VALUES
from gateway.domain.log import checkpoint_name, commit_name
from tests.builders import STARTED_AT, STEP, Field, TableBuilder, numbers, rows, with_features


def actions_of(table: TableBuilder, version: int):
    return [json.loads(line) for line in (table.log / commit_name(version)).read_text().split("\n") if line]


def content_of(table: TableBuilder):
    frames = [pl.read_parquet(io.BytesIO(table.read(path))) for path in table.live]
    return sorted(pl.concat(frames)["number"].to_list())


def modified_at(table: TableBuilder, name: str):
    return datetime.fromtimestamp((table.log / name).stat().st_mtime, tz=UTC)


def test_the_first_commit_states_protocol_and_metadata(tmp_path):
    table = numbers(tmp_path).create()

    info, protocol, metadata = actions_of(table, 0)

    assert "commitInfo" in info
    assert protocol == {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    assert metadata["metaData"]["partitionColumns"] == []
    assert table.version == 0


def test_sizes_in_the_log_are_those_on_disk(tmp_path):
    table = numbers(tmp_path).append(rows(range(10)), files=3)

    assert len(table.live) == 3
    for path, add in table.live.items():
        assert (table.directory / unquote(path)).stat().st_size == add["size"]


def test_a_partitioned_table_has_a_directory_for_each_value(tmp_path):
    fields = [Field("number", "long"), Field("p", "string")]
    table = TableBuilder(tmp_path / "t", fields, partition_by=["p"])
    table.append([{"number": n, "p": value} for n, value in enumerate(ODD_VALUES)])

    assert [add["partitionValues"]["p"] for add in table.live.values()] == list(ODD_VALUES)
    assert content_of(table) == list(range(len(ODD_VALUES)))
    assert all(pl.read_parquet(io.BytesIO(table.read(path))).columns == ["number"] for path in table.live)


def test_an_overwrite_removes_what_was_there(tmp_path):
    table = numbers(tmp_path).append(rows([1, 2]))
    [old] = table.live
    table.overwrite(rows([3]))

    assert content_of(table) == [3]
    assert [action["remove"]["path"] for action in actions_of(table, 1) if "remove" in action] == [old]


def test_a_delete_writes_anew_only_the_files_it_touches(tmp_path):
    table = numbers(tmp_path).append(rows([1, 2])).append(rows([3])).append(rows([4]))
    untouched = list(table.live)[2]
    table.delete(pl.col("number").is_in([1, 3]))

    assert content_of(table) == [2, 4]
    assert untouched in table.live
    assert len(table.live) == 2


def test_files_can_be_deleted_whole(tmp_path):
    table = numbers(tmp_path).append(rows([1])).append(rows([2]))
    table.delete_files(next(iter(table.live)))

    assert content_of(table) == [2]


def test_metadata_and_protocol_can_change(tmp_path):
    table = numbers(tmp_path).create().describe(name="new").upgrade(minReaderVersion=3, readerFeatures=[])

    assert actions_of(table, 1)[1]["metaData"]["name"] == "new"
    assert actions_of(table, 2)[1] == {"protocol": {"minReaderVersion": 3, "readerFeatures": []}}


def test_commits_are_made_at_times_that_are_known(tmp_path):
    table = (
        numbers(tmp_path)
        .create()
        .append(rows([1]))
        .on(STARTED_AT + 10 * STEP)
        .append(rows([2]))
        .append(rows([3]))
    )

    times = [modified_at(table, commit_name(version)) for version in range(4)]

    assert times == [STARTED_AT, STARTED_AT + STEP, STARTED_AT + 10 * STEP, STARTED_AT + 11 * STEP]


def test_a_checkpoint_stands_beside_its_commit(tmp_path):
    table = numbers(tmp_path).append(rows([1])).append(rows([2])).checkpoint(parts=2)

    assert all((table.log / checkpoint_name(1, part, 2)).exists() for part in (1, 2))
    assert json.loads((table.log / "_last_checkpoint").read_text()) == {"version": 1, "size": 4, "parts": 2}


def test_commits_before_a_version_can_be_cleaned_up(tmp_path):
    table = numbers(tmp_path).append(rows([1])).append(rows([2])).checkpoint().clean_up(before=1)

    assert not (table.log / commit_name(0)).exists()
    assert (table.log / commit_name(1)).exists()


def test_the_same_steps_make_the_same_bytes(tmp_path):
    def build(name: str):
        table = numbers(tmp_path / name).append(rows([1, 2])).delete(pl.col("number") == 1).checkpoint()
        return {
            str(file.relative_to(table.directory)): file.read_bytes()
            for file in sorted(table.directory.rglob("*"))
            if file.is_file()
        }

    assert build("first") == build("second")


def test_a_delete_by_vector_leaves_the_data_as_it_is(tmp_path):
    table = numbers(tmp_path, **with_features("deletionVectors")).append(rows(range(6)), files=3)
    paths = list(table.live)
    table.delete_by_vector(pl.col("number").is_in([0, 2, 3]))

    removes = [action["remove"] for action in actions_of(table, 1) if "remove" in action]
    adds = [action["add"] for action in actions_of(table, 1) if "add" in action]

    assert sorted(table.live) == sorted(paths)
    assert [remove["path"] for remove in removes] == [add["path"] for add in adds] == paths[:2]
    assert all("deletionVector" not in remove for remove in removes)
    assert [add["deletionVector"]["cardinality"] for add in adds] == [1, 2]
    assert [json.loads(add["stats"])["numRecords"] for add in adds] == [2, 2]
    assert content_of(table) == list(range(6))
    assert sorted(number for path in table.live for number in table.rows_of(path)["number"]) == [1, 4, 5]


def test_vectors_of_one_commit_share_a_file(tmp_path):
    table = numbers(tmp_path, **with_features("deletionVectors")).append(rows(range(4)), files=2)
    table.delete_by_vector(pl.col("number").is_in([0, 2]))

    vectors = [add["deletionVector"] for add in table.live.values()]
    assert len({vector["pathOrInlineDv"] for vector in vectors}) == 1
    assert len(list(table.directory.glob("deletion_vector_*.bin"))) == 1


def test_a_second_vector_takes_the_place_of_the_first(tmp_path):
    table = numbers(tmp_path, **with_features("deletionVectors")).append(rows(range(5)))
    table.delete_by_vector(pl.col("number") == 1, "i").delete_by_vector(pl.col("number") == 3, "i")

    removes = [action["remove"] for action in actions_of(table, 2) if "remove" in action]
    [add] = table.live.values()
    assert removes[0]["deletionVector"]["cardinality"] == 1
    assert add["deletionVector"]["cardinality"] == 2
    assert add["deletionVector"]["storageType"] == "i"


def test_a_vector_can_be_named_by_its_whole_path(tmp_path):
    table = numbers(tmp_path, **with_features("deletionVectors")).append(rows(range(5)))
    table.delete_by_vector(pl.col("number") == 1, "p")

    [add] = table.live.values()
    [file] = table.directory.glob("deletion_vector_*.bin")
    assert add["deletionVector"]["pathOrInlineDv"] == file.as_uri()


def test_a_delete_knows_what_vectors_took(tmp_path):
    table = numbers(tmp_path, **with_features("deletionVectors")).append(rows(range(5)))
    table.delete_by_vector(pl.col("number") == 1).delete(pl.col("number") == 3)

    assert content_of(table) == [0, 2, 4]


def test_an_update_changes_the_rows_that_meet_its_condition(tmp_path):
    table = numbers(tmp_path).append(rows([1, 2])).append(rows([3]))
    [_, untouched] = table.live
    table.update(pl.col("number") == 2, number=pl.col("number") * 10)

    assert content_of(table) == [1, 3, 20]
    assert untouched in table.live
    assert not any("cdc" in action for action in actions_of(table, 2))


def test_a_change_feed_tells_what_an_update_did(tmp_path):
    table = numbers(tmp_path, **with_features("changeDataFeed")).append(rows([1, 2]))
    table.update(pl.col("number") == 2, number=pl.lit(5))

    [change] = [action["cdc"] for action in actions_of(table, 1) if "cdc" in action]
    frame = pl.read_parquet(io.BytesIO(table.read(change["path"])))

    assert change["path"].startswith("_change_data/")
    assert (change["dataChange"], change["size"]) == (False, len(table.read(change["path"])))
    assert frame.rows() == [(2, "update_preimage"), (5, "update_postimage")]


def test_a_change_feed_tells_what_a_delete_did_in_each_partition(tmp_path):
    fields = [Field("number", "long"), Field("p", "string")]
    table = TableBuilder(tmp_path / "t", fields, partition_by=["p"], **with_features("changeDataFeed"))
    table.append([{"number": number, "p": "ab"[number % 2]} for number in range(4)])
    table.delete(pl.col("number") < 2)

    changes = [action["cdc"] for action in actions_of(table, 1) if "cdc" in action]
    frames = [pl.read_parquet(io.BytesIO(table.read(change["path"]))) for change in changes]

    assert [change["partitionValues"] for change in changes] == [{"p": "a"}, {"p": "b"}]
    assert [frame.rows() for frame in frames] == [[(0, "delete")], [(1, "delete")]]


def test_a_removal_tells_more_where_changes_are_read(tmp_path):
    told = numbers(tmp_path / "new", **with_features("changeDataFeed")).append(rows([1]))
    plain = numbers(tmp_path / "old").append(rows([1]))

    [new], [old] = (table.remove(*table.live) for table in (told, plain))

    assert set(old["remove"]) == {"path", "deletionTimestamp", "dataChange"}
    assert set(new["remove"]) - set(old["remove"]) == {"extendedFileMetadata", "partitionValues", "size"}


def mapped(tmp_path):
    fields = [Field("number", "long"), Field("p", "string")]
    return TableBuilder(tmp_path / "t", fields, partition_by=["p"], **with_features("columnMapping"))


def names_of(table: TableBuilder):
    fields = json.loads(table.metadata["schemaString"])["fields"]
    return {field["name"]: field["metadata"]["delta.columnMapping.physicalName"] for field in fields}


def test_a_mapped_table_has_physical_names_wherever_no_schema_is(tmp_path):
    table = mapped(tmp_path).append([{"number": 1, "p": "x"}])
    names = names_of(table)

    [(path, add)] = table.live.items()

    assert table.metadata["partitionColumns"] == ["p"]
    assert add["partitionValues"] == {names["p"]: "x"}
    assert json.loads(add["stats"])["minValues"] == {names["number"]: 1}
    assert pl.read_parquet(io.BytesIO(table.read(path))).columns == [names["number"]]


def test_a_renamed_column_keeps_its_name_in_the_files(tmp_path):
    table = mapped(tmp_path).append([{"number": 1, "p": "x"}])
    before = names_of(table)
    table.rename_column("number", "the number").rename_column("p", "q")
    after = names_of(table)
    table.append([{"the number": 2, "q": "y"}]).delete(pl.col("the number") == 1)

    assert (after["the number"], after["q"]) == (before["number"], before["p"])
    assert table.metadata["partitionColumns"] == ["q"]
    [add] = table.live.values()
    assert add["partitionValues"] == {before["p"]: "y"}


def test_a_column_with_the_name_of_a_dropped_one_is_another_column(tmp_path):
    table = mapped(tmp_path).append([{"number": 1, "p": "x"}])
    before = names_of(table)
    table.drop_column("number").add_columns(Field("number", "string"))

    assert names_of(table)["number"] != before["number"]
    assert table.metadata["configuration"]["delta.columnMapping.maxColumnId"] == "3"
    assert table.rows_of(next(iter(table.live))).rows() == [(None,)]


def test_columns_can_be_added_to_a_plain_table(tmp_path):
    table = numbers(tmp_path).append(rows([1])).add_columns(Field("text", "string"))
    table.append([{"number": 2, "text": "two"}])

    assert [table.rows_of(path).row(0) for path in table.live] == [(1, None), (2, "two")]
