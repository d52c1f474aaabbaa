"""A runner that is killed, and whoever takes over its view: every row is there, and there once."""

from __future__ import annotations

import pytest

from tests.components import SPARK_PIPELINE
from tests.integration.pipeline.runner_process import running_runner
from tests.integration.pipeline.view_plans import ViewOnDisk
from tests.spark import create_delta
from tests.waiting import eventually

pytestmark = pytest.mark.component(SPARK_PIPELINE)

BEFORE, ADDED = 1000, 100_000


@pytest.fixture(scope="module")
def original(spark, tmp_path_factory):
    """A table, a view that was refreshed once, and the table after more rows: each test changes copies."""
    directory = tmp_path_factory.mktemp("original")
    table = create_delta(spark, directory / "source", "id BIGINT, name STRING")
    add(table, 0, BEFORE)
    view = ViewOnDisk(spark, directory / "view", "SELECT * FROM source_0", table.path)
    view.refresh()
    grown = table.copied(directory / "grown")
    add(grown, BEFORE, ADDED)
    return table, view, grown


@pytest.fixture
def grown(original, tmp_path):
    """The source, with rows that the view does not show yet."""
    _, _, grown = original
    return grown.copied(tmp_path / "source")


@pytest.fixture
def shown(original, tmp_path):
    """The view, over the directory of the source."""
    _, view, _ = original
    return view.copied(tmp_path / "view", tmp_path / "source")


def add(table, first, count):
    rows = table.spark.range(first, first + count).selectExpr("id", "repeat(string(id), 20) AS name")
    rows.write.format("delta").mode("append").save(str(table.path))


def counts(shown):
    frame = shown.spark.read.format("delta").load(str(shown.directory))
    return tuple(frame.selectExpr("count(*)", "count(DISTINCT id)").first())


def kill_at(tmp_path, plan, moment):
    """Run a plan in a runner, and kill the runner at a moment."""
    with running_runner(tmp_path) as runner:
        runner.send(plan)
        moment(runner)
        runner.kill()


def at(message):
    """The moment when the job says what it does next."""
    return lambda runner: runner.wait_for(message)


def at_first_file(message, view):
    """The moment when the job, after it said what it does next, has begun to write a file of the view."""

    def wait(runner):
        before = set(view.root.rglob("*.parquet"))
        runner.wait_for(message)
        eventually(
            lambda: set(view.root.rglob("*.parquet")) > before,
            f"a file is written below {view.root}",
            pause=0.005,
        )

    return wait


def test_full_refreshes_that_are_killed_are_done_by_the_next(spark, grown, tmp_path):
    view = ViewOnDisk(spark, tmp_path / "view", "SELECT * FROM source_0", grown.path)
    plan = view.plan()
    for moment in (at_first_file("writing all rows", view), at("deleting what is not shown any more")):
        kill_at(tmp_path, plan, moment)
    # The very same plan, as where the worker that was killed is the one that comes back.
    result = view.refresh(fresh_name=plan["fresh_name"])
    assert result["rows"] == BEFORE + ADDED
    assert counts(view) == (BEFORE + ADDED, BEFORE + ADDED)
    files = {file.name for file in view.directory.glob("*.parquet")}
    named = spark.read.format("delta").load(str(view.directory)).inputFiles()
    assert files == {name.rpartition("/")[2] for name in named}


@pytest.mark.usefixtures("grown")
def test_appends_that_are_killed_while_they_write_are_done_by_the_next(shown, tmp_path):
    kill_at(tmp_path, shown.plan(), at_first_file("appending rows", shown))
    result = shown.refresh()
    assert counts(shown) == (BEFORE + ADDED, BEFORE + ADDED)
    assert result["rows"] == BEFORE + ADDED


@pytest.mark.usefixtures("grown")
def test_an_append_that_is_killed_before_it_answers_is_found_by_the_next(shown, tmp_path):
    kill_at(tmp_path, shown.plan(), at("deleting what is not shown any more"))
    result = shown.refresh()
    assert (result["kind"], result["version"], result["rows_added"]) == ("append", 1, ADDED)
    assert counts(shown) == (BEFORE + ADDED, BEFORE + ADDED)


def test_two_runners_with_the_same_append_add_the_rows_once(original, shown, tmp_path):
    table, _, _ = original
    source = table.copied(tmp_path / "source")
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
