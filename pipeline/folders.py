"""Directories in whatever store Spark can write to, through Hadoop.

Spark Connect has no way to them: there, nothing is deleted, and whoever asked is told so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gateway.errors import Unsupported

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def has_folders(spark: SparkSession) -> bool:
    """Say whether this session can list and delete; it cannot on Spark Connect."""
    return hasattr(spark, "_jsparkSession")


def folder_names(spark: SparkSession, url: str) -> list[str]:
    """Return the names of the directories below a place; none where there is no such place."""
    path, files = _open(spark, url)
    if not files.exists(path):
        return []
    return sorted(entry.getPath().getName() for entry in files.listStatus(path) if entry.isDirectory())


def newest_ms(spark: SparkSession, url: str) -> int:
    """Return when the youngest file below a place was written, in milliseconds; 0 where there is none."""
    path, files = _open(spark, url)
    return max((entry.getModificationTime() for entry in _files_below(files, path)), default=0)


def delete_folder(spark: SparkSession, url: str) -> None:
    """Delete a place with all that is in it, if it is there."""
    path, files = _open(spark, url)
    files.delete(path, True)  # noqa: FBT003 -- Hadoop's spelling of all that is in it


def _files_below(files: Any, path: Any) -> Iterator[Any]:
    if not files.exists(path):
        return
    found = files.listFiles(path, True)  # noqa: FBT003 -- and below
    while found.hasNext():
        yield found.next()


def _open(spark: SparkSession, url: str) -> tuple[Any, Any]:
    if not has_folders(spark):
        raise Unsupported("directories cannot be listed or deleted through Spark Connect")
    session = spark._jsparkSession  # noqa: SLF001 -- there is no other way to it
    java = spark.sparkContext._jvm  # noqa: SLF001
    assert java is not None  # noqa: S101 -- a session has a JVM
    path = java.org.apache.hadoop.fs.Path(url)
    return path, path.getFileSystem(session.sessionState().newHadoopConf())
