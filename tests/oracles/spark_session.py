"""Runs in the clients' environment: a Spark session that is quick with many small commits."""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.spark_for_speed import SMALL_TABLES


def start_session(jars: Path, scratch: Path) -> SparkSession:
    settings = {
        "spark.jars": ",".join(map(str, sorted(jars.glob("*.jar")))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "local"),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "3g",
        "spark.sql.session.timeZone": "UTC",
        # What is read back is the log, and not what Spark remembers of it.
        "spark.databricks.delta.allFilesInCrc.enabled": "false",
        # Partition values are in the log alone, as other writers have it: a client must take them from there.
        "spark.databricks.delta.properties.defaults.writePartitionColumnsToParquet": "false",
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        **_FOR_SPEED,
    }
    builder: Any = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


_FOR_SPEED = {
    **SMALL_TABLES,
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.default.parallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.history.metricsEnabled": "false",
    "spark.databricks.delta.merge.materializeSource": "none",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Xmn768m -XX:MetaspaceSize=384m -Duser.timezone=UTC",
}
