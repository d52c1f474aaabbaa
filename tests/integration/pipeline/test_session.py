from __future__ import annotations

import pytest

from tests.components import SPARK_PIPELINE

pytestmark = pytest.mark.component(SPARK_PIPELINE)


def test_a_session_writes_and_reads_delta_tables(spark, tmp_path):
    place = str(tmp_path / "table")
    spark.range(5).write.format("delta").save(place)
    assert spark.read.format("delta").load(place).count() == 5


def test_times_are_in_utc(spark):
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sql("SELECT string(timestamp'2026-01-01 00:00:00Z')").first()[0] == "2026-01-01 00:00:00"
