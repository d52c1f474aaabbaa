from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from urllib.parse import unquote

import polars as pl

from gateway.demo.sample_tables import ODD_VALUES
from gateway.domain.log import checkpoint_name, commit_name
from tests.builders import STARTED_AT, STEP, Field, TableBuilder, numbers, rows


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
