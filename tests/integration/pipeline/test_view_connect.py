"""The same job on a Spark Connect server, through the runner."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.components import SPARK_PIPELINE
from tests.installed import require_java
from tests.integration.pipeline.runner_process import running_runner
from tests.integration.pipeline.view_plans import ViewOnDisk
from tests.ports import free_ports
from tests.repository import ROOT
from tests.spark import create_delta
from tests.stores.process import listens
from tests.waiting import eventually

pytestmark = pytest.mark.component(SPARK_PIPELINE)

_START_SECONDS = 600


@pytest.fixture
def remote(tmp_path) -> Iterator[str]:
    require_java()
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "tests.integration.pipeline.connect_server", str(port)]
    with (tmp_path / "connect.log").open("wb") as log:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=ROOT)

    def is_up() -> bool:
        assert server.poll() is None, (tmp_path / "connect.log").read_text()
        return listens(port)

    eventually(is_up, "Spark Connect listens", seconds=_START_SECONDS)
    yield f"sc://127.0.0.1:{port}"
    server.communicate()


def test_a_view_is_refreshed_on_a_spark_connect_server(remote, spark, tmp_path):
    source = create_delta(spark, tmp_path / "source", "id INT, name STRING")
    source.insert("(1, 'one'), (2, 'two')")
    query = "SELECT id, :property_0 AS p FROM source_0 WHERE name = 'one' OR :property_0 IS NULL"
    shown = ViewOnDisk(spark, tmp_path / "view", query, source.path, parameters={"property_0": None})
    answers = []
    with running_runner(tmp_path) as runner:
        for request_id in ("first", "again", "more"):
            runner.send(
                shown.plan(), request_id, spark={"remote": remote}, access={"fs.s3a.bucket.b.endpoint": "x"}
            )
            answers.append(runner.answer())
            assert answers[-1]["event"] == "result", (answers, runner.log.read_text())
            shown.publish(answers[-1]["result"])
            if request_id == "again":
                source.insert("(3, 'three')")
        bad = ViewOnDisk(spark, tmp_path / "bad", "SELECT nothing FROM source_0", source.path)
        runner.send(bad.plan(), "bad", spark={"remote": remote})
        refused = runner.answer()
        assert runner.close() == 0
    # Nothing is appended there: what was added is told by a stream's batch, which is run on the server.
    assert [answer["result"]["kind"] for answer in answers] == ["full", "none", "full"]
    assert shown.rows() == [(1, None), (2, None), (3, None)]
    assert refused["message"] == "Spark refused it: UNRESOLVED_COLUMN.WITH_SUGGESTION"


def test_a_server_that_is_not_there_is_told_as_that(tmp_path):
    (port,) = free_ports(1)
    with running_runner(tmp_path) as runner:
        runner.send({}, spark={"remote": f"sc://127.0.0.1:{port}"})
        answer = runner.answer()
    assert (answer["message"], answer["retry"]) == ("the Spark Connect server does not answer", True)
