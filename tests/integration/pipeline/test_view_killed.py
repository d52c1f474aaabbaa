"""A runner that is killed, and whoever takes over its view: every row is there, and there once."""

from __future__ import annotations

import time

import pytest

from tests.components import SPARK_PIPELINE
from tests.integration.pipeline.runner_process import running_runner
from tests.integration.pipeline.view_plans import ViewOnDisk
from tests.spark import create_delta

pytestmark = pytest.mark.component(SPARK_PIPELINE)

BEFORE, ADDED = 1000, 100_000


@pytest.fixture
def source(spark, tmp_path):
    table = create_delta(spark, tmp_path / "source", "id BIGINT, name STRING")
    add(table, 0, BEFORE)
    return table


@pytest.fixture
def shown(spark, tmp_path, source):
    return ViewOnDisk(spark, tmp_path / "view", "SELECT * FROM source_0", source.path)


def add(table, first, count):
    rows = table.spark.range(first, first + count).selectExpr("id", "repeat(string(id), 20) AS name")
    rows.write.format("delta").mode("append").save(str(table.path))


def counts(shown):
    frame = shown.spark.read.format("delta").load(str(shown.directory))
    return tuple(frame.selectExpr("count(*)", "count(DISTINCT id)").first())


def kill_at(tmp_path, plan, moment):
    """Run a plan in a runner, and kill it when it gets to something, or when a file is there."""
    with running_runner(tmp_path) as runner:
        runner.send(plan)
        moment(runner)
        runner.kill()


def at(message, *, later=0.0):
    def wait(runner):
        runner.wait_for(message)
        time.sleep(later)

    return wait


def test_full_refreshes_that_are_killed_are_done_by_the_next(shown, source, tmp_path):
    add(source, BEFORE, ADDED)
    plan = shown.plan()
    for moment in (at("writing all rows", later=0.3), at("deleting what is not shown any more")):
        kill_at(tmp_path, plan, moment)
    # The very same plan, as where the worker that was killed is the one that comes back.
    result = shown.refresh(fresh_name=plan["fresh_name"])
    assert result["rows"] == BEFORE + ADDED
    assert counts(shown) == (BEFORE + ADDED, BEFORE + ADDED)
    files = {file.name for file in shown.directory.glob("*.parquet")}
    named = shown.spark.read.format("delta").load(str(shown.directory)).inputFiles()
    assert files == {name.rpartition("/")[2] for name in named}


def test_appends_that_are_killed_while_they_write_are_done_by_the_next(shown, source, tmp_path):
    shown.refresh()
    add(source, BEFORE, ADDED)
    kill_at(tmp_path, shown.plan(), at("appending rows", later=1.0))
    result = shown.refresh()
    assert counts(shown) == (BEFORE + ADDED, BEFORE + ADDED)
    assert result["rows"] == BEFORE + ADDED


def test_an_append_that_is_killed_before_it_answers_is_found_by_the_next(shown, source, tmp_path):
    shown.refresh()
    add(source, BEFORE, ADDED)
    kill_at(tmp_path, shown.plan(), at("deleting what is not shown any more"))
    result = shown.refresh()
    assert (result["kind"], result["version"], result["rows_added"]) == ("append", 1, ADDED)
    assert counts(shown) == (BEFORE + ADDED, BEFORE + ADDED)


def test_two_runners_with_the_same_append_add_the_rows_once(shown, source, tmp_path):
    shown.refresh()
    with running_runner(tmp_path) as one, running_runner(tmp_path) as other:
        # Once with nothing to do, so that both are at it together then.
        for _ in range(2):
            for runner in (one, other):
                runner.send(shown.plan())
            answers = [runner.answer() for runner in (one, other)]
            if answers[0].get("result", {}).get("kind") == "none":
                add(source, BEFORE, ADDED)
    assert counts(shown) == (BEFORE + ADDED, BEFORE + ADDED)
    done = [answer["result"] for answer in answers if answer["event"] == "result"]
    assert done
    for result in done:
        shown.publish(result)
        assert counts(shown) == (BEFORE + ADDED, BEFORE + ADDED)
    assert all(answer["retry"] for answer in answers if answer["event"] == "error")
