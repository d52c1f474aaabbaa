from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from gateway.errors import InvalidArgument
from pipeline.jobs.usage import run
from tests.components import SPARK_PIPELINE
from tests.fakes.audit_lines import MALFORMED, START, Story, parsed
from tests.integration.pipeline.usage_lake import Lake
from tests.waiting import eventually

pytestmark = pytest.mark.component(SPARK_PIPELINE)


@pytest.fixture(scope="module")
def empty_lake(spark, tmp_path_factory):
    """The tables as the job makes them before anything has landed: tests fill copies of them."""
    lake = Lake(tmp_path_factory.mktemp("lake"))
    assert lake.run(spark)["batches"] == 0
    return lake


@pytest.fixture
def lake(empty_lake, tmp_path):
    shutil.copytree(empty_lake.directory / "tables", tmp_path / "tables")
    return Lake(tmp_path)


def test_events_of_all_replicas_are_counted_once_also_when_late_or_twice(spark, lake):
    lines = Story(1).lines(60)
    first, late = lines[::2], lines[1::2]
    lake.land("a-1", first)
    lake.land("b-1", [*first[:5], *first[:5]])
    result = lake.run(spark)
    assert (result["events"], result["repeated"], result["quarantined"]) == (len(first), 10, 0)
    lake.assert_tells(spark, parsed(first))
    # A replica that was away ships what it had of the same days, and of one before.
    earlier = Story(2, START - timedelta(days=3)).lines(5, hours=2)
    lake.land("c-1", [*late, *earlier])
    result = lake.run(spark)
    assert (result["events"], result["lines"]) == (len(late) + len(earlier), len(late) + len(earlier))
    lake.assert_tells(spark, parsed([*lines, *earlier]))
    assert lake.run(spark)["batches"] == 0


def test_a_continuous_job_waits_for_the_first_segment_and_takes_up_what_lands_later(spark, lake):
    lines = Story(9).lines(20)
    batches: list[str] = []
    with running(spark, lake.plan | {"continuous_seconds": 1}, batches) as job:
        lake.land("a-1", lines[:10])
        wait_for(job, lambda: len(batches) == 1)
        assert len(lake.rows(spark, "events")) == 10
        lake.land("a-2", lines[10:])
        wait_for(job, lambda: len(batches) == 2)
        stop_at_rest(spark)
        assert job.result()["events"] == len(lines)
    lake.assert_tells(spark, parsed(lines))


def test_lines_that_are_no_events_are_kept_with_reason_file_and_number(spark, lake):
    good = Story(4).lines(3)
    bad = list(MALFORMED)
    newer = json.loads(good[0]) | {"id": "newer", "region": "eu", "cost": {"cents": 7}}
    lake.land("a-1", [good[0], *bad, *good[1:]])
    lake.land("b-1", [json.dumps(newer).encode(), b"also bad"])
    result = lake.run(spark)
    assert (result["quarantined"], result["events"]) == (len(bad) + 1, len(good) + 1)
    kept = lake.rows(spark, "quarantine")
    by_place = {(row["source_file"].rsplit("/")[-1], row["line_number"]): row for row in kept}
    expected = {("audit-a-1.jsonl", number): line for number, line in enumerate(bad, 2)}
    assert by_place.keys() == expected.keys() | {("audit-b-1.jsonl", 2)}
    for place, line in expected.items():
        row = by_place[place]
        assert row["reason"] == MALFORMED[line]
        assert (bytes(row["raw"]) if row["raw"] else row["line"].encode()) == line
    [event] = [row for row in lake.rows(spark, "events") if row["id"] == "newer"]
    assert event["more"] == {"region": '"eu"', "cost": '{"cents":7}'}
    # Whoever loses the checkpoint reads all of it again, and changes nothing.
    shutil.rmtree(lake.directory / "tables" / "_checkpoint")
    result = lake.run(spark)
    assert (result["events"], result["repeated"], result["quarantined"]) == (0, len(good) + 1, len(bad) + 1)
    assert len(lake.rows(spark, "quarantine")) == len(kept)


def test_tables_of_an_older_job_grow_the_columns_that_they_lack(spark, lake):
    events, daily = f"{lake.plan['location_url']}/events", f"{lake.plan['location_url']}/usage_daily"
    lines = Story(5).lines(8)
    lake.land("a-1", lines)
    lake.run(spark)
    # As an older job would have left them: without some columns, and with one that is gone since.
    for place, gone in ((events, ["user_agent", "more"]), (daily, ["failures", "p99_ms"])):
        older = spark.read.format("delta").load(place).drop(*gone).selectExpr("*", "'x' AS retired")
        writer = older.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        writer.partitionBy("day").save(place)
    more = Story(6).lines(8)
    lake.land("b-1", more)
    lake.run(spark)
    lake.assert_tells(spark, parsed([*lines, *more]))
    columns = spark.read.format("delta").load(events).columns
    assert {"user_agent", "more", "retired"} <= set(columns)


def test_job_makes_empty_tables_before_anything_has_landed(spark, empty_lake):
    assert empty_lake.rows(spark, "usage_daily") == []


def test_a_continuous_job_looks_again_after_a_second_at_least(spark, tmp_path):
    with pytest.raises(InvalidArgument, match="continuous_seconds is less than 1"):
        run(spark, Lake(tmp_path).plan | {"continuous_seconds": 0}, lambda *_: None)


def wait_for(job: Future[Any], is_so: Callable[[], bool]) -> None:
    def is_reached() -> bool:
        assert not job.done(), job.exception()
        return is_so()

    eventually(is_reached, "the job has done a batch", seconds=600)


def stop_at_rest(spark) -> None:
    """Stop the stream when the batch under way is done."""
    (query,) = spark.streams.active
    query.processAllAvailable()
    query.stop()


@contextmanager
def running(spark, plan: dict[str, Any], batches: list[str]) -> Iterator[Future[Any]]:
    """Run a job that goes on until its stream is stopped, and leave no stream behind.

    What it says of each batch that it has done is added to ``batches``.
    """

    def note(message: str, done: int, total: int) -> None:
        if message.startswith("batch "):
            batches.append(message)

    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(run, spark, plan, note)
        try:
            yield job
        finally:
            while not job.done():
                for query in spark.streams.active:
                    query.stop()
                time.sleep(0.1)
