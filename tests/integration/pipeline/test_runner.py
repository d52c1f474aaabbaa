from __future__ import annotations

import pytest

from tests.components import SPARK_PIPELINE
from tests.integration.pipeline.runner_process import running_runner
from tests.integration.pipeline.view_plans import ViewOnDisk
from tests.spark import create_delta

pytestmark = pytest.mark.component(SPARK_PIPELINE)


def test_a_runner_answers_request_after_request_on_one_session(spark, tmp_path):
    source = create_delta(spark, tmp_path / "source", "id INT, name STRING")
    source.insert("(1, 'one'), (2, 'two')")
    shown = ViewOnDisk(spark, tmp_path / "view", "SELECT * FROM source_0", source.path)
    with running_runner(tmp_path) as runner:
        runner.send(shown.plan())
        *progress, first = runner.replies()
        refused = list(refusals(runner, spark, tmp_path, source))
        shown.publish(first["result"])
        source.insert("(3, 'three')")
        runner.send(shown.plan(), "last")
        last = runner.answer()
        status = runner.close()
    assert [reply["message"] for reply in progress][:2] == ["starting Spark", "looking at the sources"]
    assert {reply["id"] for reply in progress} == {"1"}
    assert [reply["message"] for reply in refused] == [
        "the request is not JSON",
        "plan.sources is missing",
        "Spark refused it: UNRESOLVED_COLUMN.WITH_SUGGESTION",
        "Spark refused it: CAST_INVALID_INPUT",
        "table s.s.t0 is not there, or is no Delta table",
    ]
    assert not any(reply["retry"] for reply in refused)
    assert (first["result"]["kind"], last["id"], last["result"]["kind"]) == ("full", "last", "append")
    assert shown.rows() == [(1, "one"), (2, "two"), (3, "three")]
    assert status == 0
    log = runner.log.read_text()
    assert "hidden-key" not in log
    # Nor what a row holds that could not be cast.
    assert "CAST_INVALID_INPUT" in log
    assert "'one'" not in log
    assert "'two'" not in log


def refusals(runner, spark, tmp_path, source):
    runner.send_line("nonsense")
    yield runner.answer()
    runner.send({"query": "SELECT 1"})
    yield runner.answer()
    for query, path in (
        ("SELECT nothing FROM source_0", source.path),
        ("SELECT int(name) AS x FROM source_0", source.path),
        ("SELECT * FROM source_0", tmp_path / "nowhere"),
    ):
        view = ViewOnDisk(spark, tmp_path / "refused", query, path)
        runner.send(view.plan(), access={"fs.s3a.bucket.b.secret.key": "hidden-key"})
        yield runner.answer()


def test_a_runner_without_requests_ends_at_once_and_starts_no_spark(tmp_path):
    with running_runner(tmp_path) as runner:
        assert runner.close() == 0
    assert runner.log.read_text() == ""
