from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.jars import fetch_jars, user_cache
from tests.components import SPARK_PIPELINE
from tests.integration.pipeline.view_plans import ViewOnDisk
from tests.repository import ROOT
from tests.spark import FOR_SPEED, create_delta

pytestmark = pytest.mark.component(SPARK_PIPELINE)


def test_spark_submit_runs_the_file_of_a_job(spark, tmp_path):
    source = create_delta(spark, tmp_path / "source", "id INT")
    source.insert("(1), (2)")
    shown = ViewOnDisk(spark, tmp_path / "view", "SELECT * FROM source_0", source.path)
    # The master of the plan is not the one that spark-submit was given.
    request = {"job": "view", "plan": shown.plan(), "spark": {"master": "spark://nowhere:7077"}}
    (tmp_path / "plan.json").write_text(json.dumps(request))
    jars = ",".join(map(str, fetch_jars(user_cache(os.environ)).glob("*.jar")))
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    conf = {**FOR_SPEED, **loopback, "spark.ui.enabled": "false", "spark.log.level": "ERROR"}
    command = [
        *(Path(sys.prefix) / "bin" / "spark-submit", "--master", "local[1]"),
        *(part for name, value in conf.items() for part in ("--conf", f"{name}={value}")),
        *("--jars", jars, ROOT / "pipeline" / "jobs" / "view.py", tmp_path / "plan.json"),
    ]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # Spark sends there what a job writes to either.
    assert "writing all rows" in done.stdout
    table = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert (table["kind"], table["rows"], table["name"]) == ("full", "2", "attempt-1")
    assert (tmp_path / "view" / "attempt-1" / "_delta_log").is_dir()
