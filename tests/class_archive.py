"""An archive of the classes that Spark and Delta load (class data sharing), for the JVMs of the tests.

A JVM that maps its classes from the archive takes 40 % less CPU time until it has written its first table.
The archive is written once into the user's cache. Without it, or if it does not match, a JVM loads its
classes as usual.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pipeline.jars import jars_directory, user_cache
from tests.repository import ROOT

# Spark has these itself, in other versions: its own must come first on a class path.
_SPARK_HAS = ("commons-", "httpclient-", "httpcore-", "netty-", "slf4j-")
_ONLY_AWS_HAS = "netty-nio-client-"
# Released jars need no verification. A warning about the archive would go to standard output.
_QUICK = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote -Xshare:auto -Xlog:cds*=off"
_CLASS_PATH = "spark.driver.extraClassPath"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def archive_settings(options: str) -> dict[str, str]:
    """Return the settings of a driver with these Java options and the archive, whether that exists or not.

    An archive covers the class path alone, so the jars of Delta and S3A are put there.
    """
    if not (jars := _jars()):
        return {_JAVA_OPTIONS: options}
    return {
        "spark.jars": "",
        _CLASS_PATH: ":".join(map(str, jars)),
        _JAVA_OPTIONS: f"{options} {_QUICK} -XX:SharedArchiveFile={_archive(options)}",
    }


def ensure_archive(options: str) -> None:
    """Write the archive for these Java options if it is missing; concurrent callers wait."""
    if not _jars() or (archive := _archive(options)).exists():
        return
    archive.parent.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            _write(archive, options)


def _jars() -> list[Path]:
    jars = sorted(jars_directory(user_cache(os.environ)).glob("*.jar"))
    return [jar for jar in jars if jar.name.startswith(_ONLY_AWS_HAS) or not jar.name.startswith(_SPARK_HAS)]


def _archive(options: str) -> Path:
    """Return the file of the archive: another Java, Spark, set of jars or options, another file."""
    java, spark = shutil.which("java"), importlib.util.find_spec("pyspark")
    programs = [Path(found).resolve() for found in (java, spark and spark.origin) if found]
    # The JVM compares the times of jars, which are those of their installation.
    times = [(str(file), file.stat().st_mtime_ns) for file in (*programs, *_jars())]
    digest = hashlib.sha256(f"{times} {options}".encode() + Path(__file__).read_bytes())
    return user_cache(os.environ) / "spark-classes" / f"{digest.hexdigest()[:16]}.jsa"


def _write(archive: Path, options: str) -> None:
    """Have a JVM write the archive; if it cannot, tests run without."""
    with tempfile.TemporaryDirectory(dir=archive.parent) as directory:
        command = [sys.executable, "-m", "tests.class_archive", options, directory]
        with archive.with_suffix(".log").open("wb") as log:
            subprocess.run(command, cwd=ROOT, stdout=log, stderr=log, check=False)
        fresh = _fresh(Path(directory))
        if fresh.exists():
            fresh.rename(archive)


def _fresh(directory: Path) -> Path:
    return directory / "classes.jsa"


def main(options: str, directory: Path) -> None:
    """Load the classes that jobs need, in a JVM that archives them when it exits."""
    from pyspark import SparkContext  # noqa: PLC0415 -- for the process that writes the archive alone

    from pipeline.session import SparkSettings, open_session  # noqa: PLC0415
    from tests.spark import SETTINGS  # noqa: PLC0415

    java = f"{options} {_QUICK} -XX:ArchiveClassesAtExit={_fresh(directory)}"
    local = {"spark.local.dir": str(directory), "spark.sql.warehouse.dir": str(directory / "warehouse")}
    conf = {**SETTINGS.conf, **local, _JAVA_OPTIONS: java}
    spark = open_session(SparkSettings(master=SETTINGS.master, conf=conf))
    _work(spark, directory)
    spark.stop()
    # The JVM exits when its input ends.
    gateway: Any = SparkContext._gateway  # noqa: SLF001 -- only it knows the JVM's process
    jvm = gateway.proc
    jvm.stdin.close()
    jvm.wait()


def _work(spark: Any, directory: Path) -> None:
    """Do what most tests do: view, index and usage jobs are made of such statements."""
    table, other = f"delta.`{directory}/table`", f"delta.`{directory}/other`"
    for name in (table, other):
        spark.sql(f"CREATE TABLE {name} (id BIGINT, name STRING) USING delta PARTITIONED BY (name)")
        spark.sql(f"INSERT INTO {name} SELECT id, string(id % 2) FROM range(20)")
    spark.sql(f"DELETE FROM {table} WHERE id = 3")
    merge = f"MERGE INTO {table} t USING {other} o ON t.id = o.id WHEN MATCHED THEN UPDATE SET * "
    spark.sql(f"{merge} WHEN NOT MATCHED THEN INSERT *")
    spark.sql(f"SELECT name, count(DISTINCT id), max(id) FROM {table} GROUP BY name ORDER BY name").collect()
    rows = spark.readStream.format("delta").load(f"{directory}/table").writeStream.format("delta")
    rows = rows.option("checkpointLocation", f"{directory}/checkpoint").trigger(availableNow=True)
    rows.start(f"{directory}/copy").awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
