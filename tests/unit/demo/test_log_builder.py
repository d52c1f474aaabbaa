from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import polars as pl
import pytest

from gateway.domain.log import SIDECARS, checkpoint_name, commit_name, compaction_name
from tests.builders import (
    STARTED_AT,
    STEP,
    TableBuilder,
    add,
    numbers,
    remove,
    rows,
    with_features,
)

PARSED = pl.Struct({"numRecords": pl.Int64, "minValues": pl.Struct({"number": pl.Int64})})


def lines_of(table: TableBuilder, name: str):
    return [json.loads(line) for line in (table.log / name).read_text().split("\n") if line]


def frame_of(table: TableBuilder, name: str):
    return pl.read_parquet(io.BytesIO((table.log / name).read_bytes()))


def v2_name(table: TableBuilder) -> str:
    [file] = (file for file in table.log.iterdir() if ".checkpoint." in file.name)
    return file.name


def v2_table(tmp_path):
    table = numbers(tmp_path, **with_features("v2Checkpoint"))
    return table.append(rows([1])).append(rows([2])).delete_files(next(iter(table.live)))


def test_times_are_in_the_commits_of_a_table_that_wants_them(tmp_path):
    table = numbers(tmp_path, **with_features("inCommitTimestamp")).create().append(rows([1]))

    infos = [lines_of(table, commit_name(version))[0]["commitInfo"] for version in (0, 1)]

    times = [datetime.fromtimestamp(info["inCommitTimestamp"] / 1000, tz=UTC) for info in infos]
    assert times == [STARTED_AT, STARTED_AT + STEP]


def test_times_are_not_in_the_commits_of_others(tmp_path):
    table = numbers(tmp_path).create()

    assert "inCommitTimestamp" not in lines_of(table, commit_name(0))[0]["commitInfo"]


def test_a_commit_can_get_the_time_of_a_copy(tmp_path):
    table = numbers(tmp_path).create().touch(0, STARTED_AT + 100 * STEP)

    modified = (table.log / commit_name(0)).stat().st_mtime
    assert datetime.fromtimestamp(modified, tz=UTC) == STARTED_AT + 100 * STEP


@pytest.mark.parametrize("sidecars", [1, 2, 3])
def test_files_of_a_v2_checkpoint_are_in_its_sidecars(tmp_path, sidecars):
    table = v2_table(tmp_path).v2_checkpoint("json", sidecars=sidecars)

    actions = lines_of(table, v2_name(table))

    assert [next(iter(action)) for action in actions] == [
        *("checkpointMetadata", "protocol", "metaData"),
        *["sidecar"] * sidecars,
    ]
    files = [f"{SIDECARS}/{action['sidecar']['path']}" for action in actions[3:]]
    assert [(table.log / file).stat().st_size for file in files] == [
        action["sidecar"]["sizeInBytes"] for action in actions[3:]
    ]
    found = pl.concat([frame_of(table, file) for file in files]).to_dicts()
    assert [row["add"]["path"] for row in found if row["add"]] == list(table.live)
    assert sum(row["remove"] is not None for row in found) == 1


def test_a_v2_checkpoint_without_sidecars_holds_its_files(tmp_path):
    table = v2_table(tmp_path).v2_checkpoint("json", sidecars=0)

    actions = lines_of(table, v2_name(table))

    assert [next(iter(action)) for action in actions[3:]] == ["add", "remove"]
    assert not (table.log / SIDECARS).exists()


def test_a_v2_checkpoint_can_be_parquet(tmp_path):
    table = v2_table(tmp_path).v2_checkpoint("parquet", sidecars=2)

    frame = frame_of(table, v2_name(table))

    assert v2_name(table).endswith(".parquet")
    assert frame["sidecar"].struct.field("path").drop_nulls().len() == 2
    assert frame["add"].struct.field("path").drop_nulls().len() == 0


def test_a_v2_checkpoint_can_have_the_name_of_a_classic_one(tmp_path):
    table = v2_table(tmp_path).v2_checkpoint("classic")

    assert frame_of(table, checkpoint_name(2))["checkpointMetadata"].struct.field("version")[0] == 2


@pytest.mark.parametrize("form", ["checkpoint", "json", "parquet"])
def test_statistics_can_be_parsed(tmp_path, form):
    table = v2_table(tmp_path)
    if form == "checkpoint":
        frame = frame_of(table.checkpoint(parsed=PARSED), checkpoint_name(2))
    else:
        table.v2_checkpoint(form, parsed=PARSED)
        [sidecar] = (table.log / SIDECARS).iterdir()
        frame = frame_of(table, f"{SIDECARS}/{sidecar.name}")

    adds = [row["add"] for row in frame.to_dicts()]

    assert [each["stats_parsed"] for each in adds if each] == [{"numRecords": 1, "minValues": {"number": 2}}]
    assert [each["path"] for each in adds if each] == list(table.live)


def test_a_compaction_is_what_its_commits_amount_to(tmp_path):
    table = numbers(tmp_path).commit(add("f1"))
    table.commit(add("f2"), remove("f1")).commit(add("f3"), add("f4")).commit(remove("f3"))
    table.compact(1, 3)

    assert lines_of(table, compaction_name(1, 3)) == [add("f2"), add("f4"), remove("f1"), remove("f3")]


def test_a_compaction_from_the_start_has_protocol_and_metadata(tmp_path):
    table = numbers(tmp_path).append(rows([1])).append(rows([2])).compact(0, 1)

    kinds = [next(iter(action)) for action in lines_of(table, compaction_name(0, 1))]
    assert kinds == ["protocol", "metaData", "add", "add"]
