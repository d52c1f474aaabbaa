from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench.logs import FIRST_ID, ROWS_PER_FILE, write_log
from gateway.domain.index import CURRENT, prefix_of
from gateway.domain.log import commit_name
from gateway.errors import Unsupported
from gateway.v1 import snapshot_pb2 as pb
from tests.components import SPARK_PIPELINE
from tests.integration.pipeline.indexes import JOB, IndexedDisk, all_rows
from tests.integration.pipeline.runner_process import running_runner
from tests.spark import create_delta
from tests.unit.services.snapshot.index.histories import History
from tests.unit.services.snapshot.index.served import Served, bytes_of, lines_of

pytestmark = pytest.mark.component(SPARK_PIPELINE)

# One for each row, of all types that statistics and partitions have.
TYPES = (
    "p STRING, q DATE, r TIMESTAMP, i INT, l BIGINT, f FLOAT, d DOUBLE, m DECIMAL(20, 4), s STRING, "
    "b BOOLEAN, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, deep STRUCT<x: INT, y: STRUCT<z: STRING>>"
)
ROW = (
    "('{p}', DATE '2024-01-{day:02d}', TIMESTAMP '2024-01-{day:02d} 10:00:00', {n}, {n}, {n} / 3, {n} / 3, "
    "{n} / 3, 'word {n:03d} ä', {n} % 2 = 0, DATE '2024-02-{day:02d}', "
    "TIMESTAMP '2024-02-{day:02d} 01:02:03.456789', TIMESTAMP_NTZ '2024-02-{day:02d} 01:02:03.456789', "
    "named_struct('x', {n}, 'y', named_struct('z', 's{n}')))"
)
READS_ALL = pb.ReaderCapabilities(
    response_formats=[pb.RESPONSE_FORMAT_DELTA],
    reader_features=["deletionvectors", "columnmapping", "timestampntz"],
)
PREDICATES = [
    "p = 'a'",
    "q >= DATE '2024-01-05'",
    "r < TIMESTAMP '2024-01-03 00:00:00'",
    "i = 3",
    "l > 5 AND l < 8",
    "f <= 1.3333334",
    "d = 2.3333333333333335",
    "m <> 0.3333",
    "s = 'word 004 ä'",
    "s < 'word 003'",
    "b = true",
    "day = DATE '2024-02-04'",
    "at >= TIMESTAMP '2024-02-07 01:02:03.456789'",
    "local < TIMESTAMP_NTZ '2024-02-03 00:00:00'",
    "deep.x = 4",
    "deep.y.z = 's5'",
    "i IS NULL",
    "p IS NULL OR i IN (1, 9)",
]


async def compare(indexed: Served, direct: Served, hints: list[str], max_files: int = 7) -> None:
    asked: dict[str, Any] = {"predicate_hints": hints, "capabilities": READS_ALL}
    found, expected = [await each.query(**asked) for each in (indexed, direct)]
    assert found.head.lines == expected.head.lines, hints
    assert lines_of(found) == lines_of(expected), hints
    asked["max_files"] = max_files
    assert bytes_of(await indexed.pages(**asked)) == bytes_of(await direct.pages(**asked)), hints


@pytest.mark.parametrize(("seed", "kind"), [(1, ""), (2, "classic"), (3, "parts"), (4, "v2")])
async def test_an_index_of_a_random_history_answers_as_the_log_does(spark, tmp_path, seed, kind):
    disk, history = IndexedDisk(spark, tmp_path), History(seed)
    for _ in range(3):
        history.commit(25)
    disk.write(history)
    disk.checkpoint(history, kind)
    history.commit(10)
    disk.write(history)
    made = await disk.index()
    assert made is not None
    assert (made["kind"], made["num_files"]) == ("full", len(history.live))
    await check(disk, history)
    # Behind by a commit.
    history.commit(3)
    disk.write(history)
    await check(disk, history)


async def check(disk: IndexedDisk, history: History) -> None:
    served, direct = disk.served(), disk.direct()
    assert (await all_rows(served)).equals(await all_rows(direct))
    for _ in range(4):
        await compare(served, direct, [history.predicate() for _ in range(history.random.randrange(3))])
    assert served.metrics.indexes == ["used"]


async def test_index_that_is_made_step_by_step_holds_the_same_as_one_made_at_once(spark, tmp_path):
    # A state at a place of any name: an incremental index finds the blocks before it by their paths.
    place = tmp_path / "v1" / "blocks" / "a b%20"
    place.mkdir(parents=True)
    history = History(5)
    steps, once = IndexedDisk(spark, place, table=tmp_path / "a"), IndexedDisk(spark, tmp_path / "b")
    made = [await step(steps, history, changes) for changes in (45, 15, 3)]
    assert [each["kind"] for each in made] == ["full", "incremental", "incremental"]
    assert made[-1]["blocks_written"] < made[-1]["blocks"]
    assert await steps.index() is None
    once.write(history)
    await once.index()
    found, expected = await all_rows(steps.served()), await all_rows(once.served())
    assert found.equals(expected)
    await check_without_files(steps, history)


async def step(disk: IndexedDisk, history: History, changes: int) -> dict[str, Any]:
    """Commit to the table, and bring its index up to date by that alone."""
    history.commit(changes)
    disk.write(history)
    if history.version:
        # Behind by a commit.
        await check(disk, history)
    else:
        disk.checkpoint(history, "v2")
    made = await disk.index()
    assert made is not None
    assert made["num_files"] == len(history.live)
    await check(disk, history)
    return made


async def check_without_files(disk: IndexedDisk, history: History) -> None:
    """Remove all files from the table: its index has none then."""
    removes = [{"remove": {**add, "deletionTimestamp": 5}} for add in history.live.values()]
    text = "\n".join(json.dumps(remove) for remove in removes)
    (disk.log_directory / commit_name(history.version + 1)).write_text(text)
    made = await disk.index()
    assert made is not None
    assert (made["kind"], made["num_files"], made["blocks"]) == ("incremental", 0, 0)
    served = disk.served()
    assert not (await served.query(capabilities=READS_ALL)).lines
    assert served.metrics.indexes == ["used"]


async def test_a_text_that_ends_as_a_line_does_is_within_the_bounds_of_its_block(spark, tmp_path):
    disk = IndexedDisk(spark, tmp_path)
    disk.craft = disk.new_craft(block_rows=1)
    highs = ["abc?\n", "abc?\r\n", "abc?\u2028", "abc?\ufffd", "abc\ufffd\n", "abc?"]
    disk.add([_file(f"{number}.parquet", "abc", high) for number, high in enumerate(highs)])
    await disk.index()
    served, direct = disk.served(), disk.direct()
    for word in ["abc?", "abc>", "abc", *highs]:
        await compare(served, direct, [f"s = '{word}'"])
    assert served.metrics.indexes == ["used"]


def _file(path: str, low: str, high: str) -> dict[str, Any]:
    bounds = {"minValues": {"s": low}, "maxValues": {"s": high}, "nullCount": {"s": 0}}
    stats = json.dumps({"numRecords": 1, **bounds}, ensure_ascii=False)
    partition = {"p": "a", "n": "1"}
    facts = {"size": 1, "modificationTime": 5, "dataChange": True, "stats": stats}
    return {"path": path, "partitionValues": partition, **facts}


@pytest.fixture(scope="module")
def types(spark, tmp_path_factory):
    """A table of all types, with columns under other names, deletion vectors, and a row without values.

    A test that changes it takes a copy.
    """
    table = create_delta(
        spark,
        tmp_path_factory.mktemp("types") / "types",
        TYPES,
        "PARTITIONED BY (p, q, r) TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.enableDeletionVectors' = 'true', 'delta.checkpointInterval' = '6')",
    )
    rows = [ROW.format(p="ab"[n % 2], day=n, n=n) for n in range(1, 10)]
    table.insert(", ".join(rows))
    nothing = ", ".join(["NULL"] * 14)
    table.insert(f"({nothing})")
    table.sql("DELETE FROM {table} WHERE i = 5")
    table.sql("ALTER TABLE {table} RENAME COLUMN l TO long")
    table.sql("ALTER TABLE {table} RENAME COLUMN long TO l")
    table.insert(ROW.format(p="c", day=11, n=11))
    return table


async def test_typed_statistics_say_what_the_texts_of_delta_s_own_log_do(spark, tmp_path, types):
    disk = IndexedDisk(spark, tmp_path, table=types.path)
    disk.craft = disk.new_craft(block_rows=2)
    assert await disk.index() is not None
    served, direct = disk.served(), disk.direct()
    assert (await all_rows(served)).equals(await all_rows(direct))
    for predicate in PREDICATES:
        await compare(served, direct, [predicate])
    # How many depends on the order of the files' names, which Delta makes up.
    read, skipped = [sum(each) for each in zip(*served.metrics.blocks, strict=True)]
    assert read > 0
    assert skipped > 0


async def test_a_schema_that_changes_has_all_blocks_made_anew(spark, tmp_path, types):
    table = types.copied(tmp_path / "types")
    disk = IndexedDisk(spark, tmp_path, table=table.path)
    disk.craft = disk.new_craft(block_rows=4)
    await disk.index()
    table.sql("ALTER TABLE {table} ADD COLUMN more INT")
    table.insert(f"{ROW.format(p='d', day=12, n=12)[:-1]}, 77)")
    made = await disk.index()
    assert made is not None
    assert made["kind"] == "incremental"
    assert made["blocks_written"] == made["blocks"]
    # By the same checkpoint: what comes from one is no change of data any more.
    await compare(disk.served(), disk.direct(), ["more = 77"])


async def test_index_of_many_files_has_the_files_of_the_log(spark, tmp_path):
    # Four blocks: more of them take the same paths.
    await check_large(spark, tmp_path, 8000, block_rows=2048)


@pytest.mark.deep
async def test_index_of_a_million_files_has_the_files_of_the_log(spark, tmp_path):
    await check_large(spark, tmp_path, 1_000_000, block_rows=8192)


async def check_large(spark, tmp_path, files: int, *, block_rows: int) -> None:
    log = write_log(tmp_path / "table", files)
    disk = IndexedDisk(spark, tmp_path)
    disk.craft = disk.new_craft(block_rows=block_rows)
    made = await disk.index()
    assert made is not None
    assert made["num_files"] == log.live
    log.commit()
    served, direct = Served(disk.log, disk.state, memory=2**31), Served(disk.log, None, memory=2**31)
    assert (await all_rows(served)).equals(await all_rows(direct))
    low = FIRST_ID + files // 2 * ROWS_PER_FILE
    hints = [f"id >= {low} AND id < {low + 9 * ROWS_PER_FILE}", "day = '2024-01-01' AND level = 4"]
    for hint in hints:
        await compare(served, direct, [hint], max_files=1000)


class Killed(Exception):
    pass


async def test_job_that_ends_or_is_killed_at_any_step_leaves_the_old_index_in_force(spark, tmp_path):
    disk, history, before = await behind(spark, tmp_path)
    for step in range(1, 5):
        with pytest.raises(Killed):
            await disk.index(partial(end_at, step))
        assert await current_of(disk) == before
        await check(disk, history)
    for moment in ("reading the commits", "blocks are written", "zones are written"):
        await kill_runner_at(moment, disk, tmp_path)
        assert await current_of(disk) == before
        await check(disk, history)
    # What they left behind is in no other job's way.
    assert await disk.index() is not None
    assert await current_of(disk) != before
    await check(disk, history)


async def behind(spark, tmp_path) -> tuple[IndexedDisk, History, Any]:
    """Return a table whose index is behind by a commit, and what is in force."""
    disk, history = IndexedDisk(spark, tmp_path), History(6)
    history.commit(20)
    disk.write(history)
    await disk.index()
    history.commit(5)
    disk.write(history)
    return disk, history, await current_of(disk)


async def current_of(disk: IndexedDisk) -> Any:
    return await disk.state.get(f"{prefix_of(disk.log.location)}{CURRENT}")


async def kill_runner_at(moment: str, disk: IndexedDisk, tmp_path: Path) -> None:
    plan = await disk.craft.plan(JOB)
    assert plan is not None
    with running_runner(tmp_path) as runner:
        runner.send(plan.body, job="index")
        runner.wait_for(moment)
        runner.kill()


def end_at(step: int, message: str, done: int, total: int) -> None:
    if done == step:
        raise Killed


async def test_a_checkpoint_without_texts_is_declined(spark, tmp_path):
    table = create_delta(
        spark,
        tmp_path / "typed",
        "i INT",
        "TBLPROPERTIES ('delta.checkpoint.writeStatsAsJson' = 'false', "
        "'delta.checkpoint.writeStatsAsStruct' = 'true', 'delta.checkpointInterval' = '1')",
    )
    table.insert("(1)")
    disk = IndexedDisk(spark, tmp_path, table=table.path)
    plan = await disk.craft.plan(JOB)
    assert plan is not None
    with pytest.raises(Unsupported, match="writeStatsAsJson"):
        disk.run(plan)
