"""A runner that is killed, and whoever takes over its view: every row is there, and there once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline.faults import fault_of
from pipeline.jobs import view
from tests.components import SPARK_PIPELINE
from tests.integration.pipeline.runner_process import running_runner, stopped
from tests.integration.pipeline.view_plans import ViewOnDisk
from tests.spark import create_delta
from tests.waiting import eventually

pytestmark = pytest.mark.component(SPARK_PIPELINE)

BEFORE, ADDED = 1000, 20_000
LAST_STEP = "deleting what is not shown any more"
# Longer than a JVM takes to start on a busy machine.
WAIT_SECONDS = 600


@pytest.fixture(scope="module")
def original(spark, tmp_path_factory):
    """A table, a view that was refreshed once, and the table after more rows: each test changes copies."""
    directory = tmp_path_factory.mktemp("original")
    table = create_delta(spark, directory / "source", "id BIGINT, name STRING")
    add(table, 0, BEFORE)
    shown = ViewOnDisk(spark, directory / "view", "SELECT * FROM source_0", table.path)
    shown.refresh()
    grown = table.copied(directory / "grown")
    add(grown, BEFORE, ADDED)
    return table, shown, grown


@pytest.fixture
def grown(original, tmp_path):
    """The source, with rows that the view does not show yet."""
    _, _, grown = original
    return grown.copied(tmp_path / "source")


@pytest.fixture
def shown(original, tmp_path):
    """The view, over the directory of the source."""
    _, shown, _ = original
    return shown.copied(tmp_path / "view", tmp_path / "source")


def add(table, first, count):
    rows = table.spark.range(first, first + count).selectExpr("id", "repeat(string(id), 20) AS name")
    rows.write.format("delta").mode("append").save(str(table.path))


def counts(shown):
    frame = shown.spark.read.format("delta").load(str(shown.directory))
    return tuple(frame.selectExpr("count(*)", "count(DISTINCT id)").first())


def wait_for_first_file(runner, message, root):
    """Wait until the job, after it said what it does next, has begun to write a file below a root."""
    before = set(root.rglob("*.parquet"))
    runner.wait_for(message)
    eventually(
        lambda: set(root.rglob("*.parquet")) > before,
        f"a file is written below {root}",
        seconds=WAIT_SECONDS,
        pause=0.005,
    )


def copy_at_first_file(runner, message, shown, directory):
    """Return a copy of the view as it would be if the runner had been killed while it writes."""
    wait_for_first_file(runner, message, shown.root)
    with stopped(runner.pid):
        return shown.copied(directory / "halfway", directory / "source")


def test_full_refreshes_that_are_killed_are_done_by_the_next(spark, grown, tmp_path):
    shown = ViewOnDisk(spark, tmp_path / "view", "SELECT * FROM source_0", grown.path)
    plan = shown.plan()
    with running_runner(tmp_path) as runner:
        runner.send(plan)
        halfway = copy_at_first_file(runner, "writing all rows", shown, tmp_path)
        runner.wait_for(LAST_STEP)
        runner.kill()
    for killed in (halfway, shown):
        # The very same plan, as where the worker that was killed is the one that comes back.
        result = killed.refresh(fresh_name=plan["fresh_name"])
        assert result["rows"] == BEFORE + ADDED
        assert counts(killed) == (BEFORE + ADDED, BEFORE + ADDED)
        files = {file.name for file in killed.directory.glob("*.parquet")}
        named = spark.read.format("delta").load(str(killed.directory)).inputFiles()
        assert files == {name.rpartition("/")[2] for name in named}


@pytest.mark.usefixtures("grown")
def test_appends_that_are_killed_are_done_or_found_by_the_next(shown, tmp_path):
    with running_runner(tmp_path) as runner:
        runner.send(shown.plan())
        halfway = copy_at_first_file(runner, "appending rows", shown, tmp_path)
        runner.wait_for(LAST_STEP)
        runner.kill()
    result = halfway.refresh()
    assert counts(halfway) == (BEFORE + ADDED, BEFORE + ADDED)
    assert result["rows"] == BEFORE + ADDED
    result = shown.refresh()
    assert (result["kind"], result["version"], result["rows_added"]) == ("append", 1, ADDED)
    assert counts(shown) == (BEFORE + ADDED, BEFORE + ADDED)


def test_two_processes_with_the_same_append_add_the_rows_once(original, shown, tmp_path):
    table, _, _ = original
    source = table.copied(tmp_path / "source")
    both = threading.Event()

    def wait_for_both(message, done, total):
        assert message != "appending rows" or both.wait(WAIT_SECONDS)

    with running_runner(tmp_path) as runner, ThreadPoolExecutor(1) as pool:
        # With nothing to do, so that its Spark runs.
        runner.send(shown.plan())
        assert runner.answer()["result"]["kind"] == "none"
        add(source, BEFORE, ADDED)
        runner.send(shown.plan())
        here = pool.submit(answer_here, shown, shown.plan(), wait_for_both)
        runner.wait_for("appending rows")
        both.set()
        answers = [runner.answer(), here.result()]
    assert counts(shown) == (BEFORE + ADDED, BEFORE + ADDED)
    done = [answer["result"] for answer in answers if answer["event"] == "result"]
    assert done
    for result in done:
        shown.publish(result)
        assert counts(shown) == (BEFORE + ADDED, BEFORE + ADDED)
    assert all(answer["retry"] for answer in answers if answer["event"] == "error")


def answer_here(shown, plan, progress):
    """Run a plan on the session of this process, and return what a runner would reply."""
    try:
        return {"event": "result", "result": view.run(shown.spark, plan, progress)}
    except Exception as exc:  # noqa: BLE001 -- the test judges whether it can be tried again
        return {"event": "error", "retry": fault_of(exc).retry}
