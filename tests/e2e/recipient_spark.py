"""Runs in the clients' environment: a Spark application whose executors outlive their first credentials.

Arguments: a directory to meet the test in, addresses of two tables, the location of the second, and the
address of a table at the gateway itself.
"""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from sluice_recipient import open_table

S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
CONTAINER = "software.amazon.awssdk.auth.credentials.ContainerCredentialsProvider"

# Released jars need no verification.
JAVA_OPTIONS = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)


def main(meeting: Path, orders: str, archive: str, elsewhere: str, at_gateway: str) -> None:
    spark = _session()
    first, second = open_table(orders).to_pyspark(spark), open_table(archive).to_pyspark(spark)
    result: dict[str, Any] = {
        "orders": _rows_held(first, meeting / "orders"),
        "together": first.unionAll(second).count(),
        "neighbour": _error_of(lambda: _read_elsewhere(spark, first, elsewhere).count()),
        "container": _rows_held(_read_by_container(spark, elsewhere), meeting / "container"),
    }
    # After all that is made void on the way: the gateway keeps a credential for as long as it should live.
    third = open_table(at_gateway).to_pyspark(spark)
    result["gateway"] = third.count()
    result["gateway neighbour"] = _error_of(lambda: _read_elsewhere(spark, third, elsewhere).count())
    (meeting / "result.json").write_text(json.dumps(result))
    spark.stop()


def _session() -> SparkSession:
    settings = {
        **json.loads(os.environ["SPARK_SETTINGS"]),
        "spark.jars": ",".join(map(str, Path(os.environ["SPARK_JARS"]).glob("*.jar"))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # One task after the other, in a JVM that is not the driver's.
        "spark.master": "local-cluster[1,1,1024]",
        "spark.executor.memory": "512m",
        # Neither JVM lives long enough for its optimising compiler to pay.
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.executor.extraJavaOptions": JAVA_OPTIONS,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        # One file for each task.
        "spark.sql.files.openCostInBytes": "134217728",
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    builder: Any = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    return session


def _rows_held(frame: DataFrame, meeting: Path) -> int:
    """Count rows; an executor that has read a file waits for the test before it reads the next one."""
    place = str(meeting)

    def hold(rows: Iterable[Any]) -> Iterator[int]:
        count = sum(1 for _ in rows)
        Path(place).with_suffix(".reached").touch()
        while not Path(place).with_suffix(".go").exists():
            time.sleep(0.2)
        yield count

    total: int = frame.rdd.mapPartitions(hold).sum()
    return total


def _read_elsewhere(spark: SparkSession, frame: DataFrame, location: str) -> DataFrame:
    """Read another directory with the file system, and so with the credential, of a table."""
    scheme = frame.inputFiles()[0].partition("://")[0]
    other = location.replace("s3://", f"{scheme}://")
    return spark.read.option(f"fs.{scheme}.impl", S3A).format("delta").load(other)


def _read_by_container(spark: SparkSession, location: str) -> DataFrame:
    """Read with nothing of ours: S3A asks the gateway, as the environment says."""
    settings = {
        "fs.s3a.aws.credentials.provider": CONTAINER,
        "fs.s3a.endpoint": os.environ["STORE"],
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
    }
    return spark.read.format("delta").options(**settings).load(location.replace("s3://", "s3a://"))


def _error_of(call: Any) -> str | None:
    try:
        call()
    except Exception as exc:  # noqa: BLE001 -- whatever Spark raises is the test's to judge
        return str(exc)
    return None


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
