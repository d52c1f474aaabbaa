"""Hadoop settings of one run: with them a session reaches the places of a plan, and with no older ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from pipeline.session import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What a file system of S3A is made from, by bucket. A bucket's name may have dots in it, and so has the rest.
_BY_BUCKET: Final = re.compile(
    r"fs\.s3a\.bucket\.(?P<bucket>.+)\.(?:access\.key|secret\.key|session\.token|aws\.credentials\.provider"
    r"|endpoint|endpoint\.region|path\.style\.access|connection\.ssl\.enabled)"
)
_UNCACHED: Final = "fs.s3a.impl.disable.cache"


class Access:
    """Gives each run a session with its own settings, on the Spark that all runs share.

    Hadoop keeps a file system for each bucket, made with the settings of whoever came first. On this machine
    those of buckets with other settings are closed. Executors and servers elsewhere cannot be told so: there,
    from the first change on, none is kept.
    """

    def __init__(self, session: SparkSession, settings: SparkSettings) -> None:
        self._session = session
        self._settings = settings
        self._applied: Mapping[str, str] | None = None

    def session_with(self, access: Mapping[str, str]) -> SparkSession:
        """Return a session for one run."""
        changed = self._changed(access)
        self._applied = dict(access)
        if self._settings.remote:
            return self._remote_session(access)
        session = self._session.newSession()
        for name, value in access.items():
            session.conf.set(name, value)
        if changed and not self._settings.is_local:
            session.conf.set(_UNCACHED, "true")
        _forget(session, changed, is_local=self._settings.is_local)
        return session

    def _changed(self, access: Mapping[str, str]) -> set[str]:
        if self._applied is None:
            return set()
        return {name for name in {*access, *self._applied} if access.get(name) != self._applied.get(name)}

    def _remote_session(self, access: Mapping[str, str]) -> SparkSession:
        # A copy of the first, which never has the settings of any run.
        session: SparkSession = self._session.cloneSession()  # type: ignore[attr-defined]
        for name, value in access.items():
            session.conf.set(name, value)
        if access:
            # The server may have served others, with other keys, before us.
            session.conf.set(_UNCACHED, "true")
        return session


def _forget(session: SparkSession, changed: set[str], *, is_local: bool) -> None:
    """Forget file systems that were made with other settings, and what Delta remembers of tables on them."""
    java = session.sparkContext._jvm  # noqa: SLF001 -- there is no other way to it
    assert java is not None  # noqa: S101 -- a session has a JVM
    if is_local:
        hadoop = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
        for bucket in sorted(set(bucket_names(changed))):
            place = java.java.net.URI(f"s3a://{bucket}/")
            java.org.apache.hadoop.fs.FileSystem.get(place, hadoop).close()
    # A snapshot reads its log with the settings that it was first asked for with.
    java.org.apache.spark.sql.delta.DeltaLog.clearCache()


def bucket_names(settings: set[str]) -> Iterator[str]:
    """Yield the bucket of each S3A setting that is specific to a bucket."""
    for name in settings:
        if found := _BY_BUCKET.fullmatch(name):
            yield found["bucket"]
