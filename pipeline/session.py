"""The one way to a Spark session: on this machine, on a cluster, or on a Spark Connect server."""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gateway.errors import InvalidArgument, Unavailable
from pipeline.jars import fetch_jars, has_maven, jars_directory, packages, user_cache

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# In names of settings: what Spark itself leaves out of what it prints.
SECRET_NAME: Final = re.compile(r"(?i)secret|password|token|access[.]?key|account[.]key|sas|private")

# Outside of Hadoop's settings, where other names only tell where a secret is.
_OWN_SECRET: Final = re.compile(r"(?i)(?:secret|password|passwd|token|access[._-]?key|private[._-]?key)$")

_HADOOP: Final = "spark.hadoop."
_SERVER_SECONDS: Final = 15
_LOG_SETTINGS: Final = Path(__file__).with_name("log4j2.properties")
_EXTENSIONS: Final = "spark.sql.extensions"
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"

_DELTA: Final = {
    _EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
# What a session can be told after it was started, too.
_ANYWHERE: Final = {
    "spark.sql.session.timeZone": "UTC",
    # Delta's parser does not know how else the parameters of a query are handed on.
    "spark.sql.legacy.parameterSubstitution.constantsOnly": "true",
}
_ALWAYS: Final = {
    **_ANYWHERE,
    "spark.app.name": "sluice",
    # Tables are named by their places: there is no metastore to ask, and none to keep on disk.
    "spark.sql.catalogImplementation": "in-memory",
    # Standard output is for answers.
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
_LOCAL: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}
# What Ivy would bring besides: every service of AWS, and what PySpark has already.
_NOT_FETCHED: Final = (
    "software.amazon.awssdk:bundle,org.apache.hadoop:hadoop-common,org.apache.hadoop:hadoop-client-api"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Which Spark a job runs on."""

    master: str = "local[*]"
    # A Spark Connect server in place of a master: sc://host:port.
    remote: str = ""
    # A directory of jars; empty: fetched once into the user's cache.
    jars: str = ""
    # Settings of Spark's own; they win over ours.
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_local(self) -> bool:
        return not self.remote and self.master.startswith("local")


def open_session(settings: SparkSettings) -> SparkSession:
    """Start a session, or return the one that runs.

    Under spark-submit the master, the jars and whatever else it was given are left as they are.
    """
    session = _open_remote(settings) if settings.remote else _open_classic(settings)
    _quieten()
    return session


def classic_settings(settings: SparkSettings, cache: Path) -> dict[str, str]:
    """Return what a session that is no client of a server is started with; the jars are in the cache."""
    _refuse_secrets(settings.conf)
    conf = {**_DELTA, **_ALWAYS}
    if settings.is_local:
        conf |= _LOCAL
        conf["spark.sql.warehouse.dir"] = str(cache.parent / "spark-warehouse")
    conf |= {"spark.master": settings.master, **_jar_settings(settings, cache)}
    conf |= {name: value for name, value in settings.conf.items() if not is_secret(name)}
    conf[_EXTENSIONS] = ",".join(_with_delta(settings.conf.get(_EXTENSIONS, "")))
    quiet = f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()} -Duser.timezone=UTC"
    conf[_JAVA_OPTIONS] = f"{quiet} {settings.conf.get(_JAVA_OPTIONS, '')}".strip()
    return conf


def is_secret(name: str) -> bool:
    """Say whether a setting of Hadoop's is one that nobody may see."""
    return name.startswith(_HADOOP) and SECRET_NAME.search(name) is not None


def _refuse_secrets(conf: Mapping[str, str]) -> None:
    """Raise ``InvalidArgument`` for what a JVM cannot be told but on its command line, for all to see."""
    for name in conf:
        if not name.startswith(_HADOOP) and _OWN_SECRET.search(name):
            raise InvalidArgument(
                f"{name} would stand on a command line: put it into Spark's own spark-defaults.conf"
            )


def _open_classic(settings: SparkSettings) -> SparkSession:
    if _is_submitted():
        conf = _without_what_was_submitted(settings)
    else:
        _require_java()
        conf = classic_settings(settings, user_cache(os.environ))
    session = _start(conf)
    # Not before: what a JVM is started with is for all to see in the list of processes.
    hadoop = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 -- there is no other way to it
    for name, value in settings.conf.items():
        if is_secret(name):
            hadoop.set(name.removeprefix(_HADOOP), value)
    return session


def _quieten() -> None:
    """Have PySpark write no error by itself: it would quote the query, before anybody could mask it."""
    from pyspark.logger import PySparkLogger  # noqa: PLC0415 -- half a second, and not everywhere

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)


def _start(conf: Mapping[str, str]) -> SparkSession:
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415 -- half a second, and not everywhere
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder: Any = SparkSession.builder
    try:
        session: SparkSession = builder.config(map=dict(conf)).getOrCreate()
    except PySparkRuntimeError as exc:
        if exc.getCondition() == "JAVA_GATEWAY_EXITED":
            raise Unavailable(
                "Spark did not start; it needs Java 17 or newer, and the memory asked for"
            ) from exc
        raise
    return session


def _open_remote(settings: SparkSettings) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415 -- half a second, and not everywhere

    builder: Any = SparkSession.builder
    try:
        _await_server(settings.remote)
        session: SparkSession = builder.remote(settings.remote).create()
    except ImportError as exc:
        raise InvalidArgument(
            "a client for Spark Connect is not installed: pip install '.[connect]' in a checkout of Sluice: "
            f"{exc}"
        ) from exc
    for name, value in {**_ANYWHERE, **settings.conf}.items():
        session.conf.set(name.removeprefix(_HADOOP), value)
    return session


def _await_server(url: str) -> None:
    """Raise ``Unavailable`` where no server answers: Spark's own client would go on asking for minutes."""
    import grpc  # noqa: PLC0415 -- a cluster's machines may have no use for it
    from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415

    channel = DefaultChannelBuilder(url).toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=_SERVER_SECONDS)
    except grpc.FutureTimeoutError as exc:
        raise Unavailable("the Spark Connect server does not answer") from exc
    finally:
        channel.close()


def _is_submitted() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _without_what_was_submitted(settings: SparkSettings) -> dict[str, str]:
    conf = {**_DELTA, **_ANYWHERE, **settings.conf}
    conf[_EXTENSIONS] = ",".join(_with_delta(settings.conf.get(_EXTENSIONS, "")))
    return {name: value for name, value in conf.items() if not is_secret(name)}


def _jar_settings(settings: SparkSettings, cache: Path) -> dict[str, str]:
    if settings.jars:
        return _all_jars(Path(settings.jars))
    if jars_directory(cache).exists() or has_maven():
        return _all_jars(fetch_jars(cache))
    # Spark's own way to fetch them, which is slower and says much on the way.
    return {"spark.jars.packages": packages(), "spark.jars.excludes": _NOT_FETCHED}


def _all_jars(directory: Path) -> dict[str, str]:
    jars = sorted(directory.glob("*.jar"))
    if not jars:
        raise InvalidArgument(f"there are no jars in {directory}")
    return {"spark.jars": ",".join(map(str, jars))}


def _with_delta(given: str) -> Iterator[str]:
    yield _DELTA[_EXTENSIONS]
    for name in filter(None, map(str.strip, given.split(","))):
        if name != _DELTA[_EXTENSIONS]:
            yield name


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not (shutil.which("java") or (home and (Path(home) / "bin" / "java").exists())):
        raise Unavailable("there is no Java; Spark needs Java 17 or newer, on the PATH or at JAVA_HOME")
