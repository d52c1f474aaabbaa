"""The rows that were added to a source, as a view shows them, into the directory that shows the others."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pipeline.view.frame import view_frame
from pipeline.view.plan import Shown, SourceState, ViewPlan
from pipeline.view.source import changes_since, latest_version, read_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# One batch, whatever there is: it is one commit, and is there or is not.
_NO_LIMIT: Final = 2**31 - 1


class NotAppended(Exception):
    """What is in the directory cannot be told for sure; another one has to be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """The source's version until which its rows are in the directory, and how many of them are new."""

    until: int
    rows: int


def append(spark: SparkSession, plan: ViewPlan, shown: Shown, state: SourceState) -> Appended:
    """Append the rows that commits after what is shown have added, once, whoever else does the same.

    Delta's own stream reads them, and a transaction of Delta's is named for where they begin, so that of all
    attempts at it one is written. Attempts may end at different versions of the source; but those are
    beginnings of one sequence of rows, so that as many rows are the same rows.
    """
    source = plan.sources[0]
    before = shown.sources[source.name].version
    target = plan.url(shown.name)
    batch = _Batch(plan=plan, target=target, shown_version=shown.version, before=before, seen=state.version)
    until = _stream(spark, source.url, before, batch) or state.version
    if batch.rows is None or batch.is_split:
        raise NotAppended("the rows did not come as one batch")
    if batch.rows:
        _confirm(spark, target, shown.version, batch.rows)
    return Appended(until=until, rows=batch.rows)


class _Batch:
    """Writes the one batch that there is."""

    def __init__(self, *, plan: ViewPlan, target: str, shown_version: int, before: int, seen: int) -> None:
        self._plan = plan
        self._target = target
        self._shown_version = shown_version
        self._before = before
        self._seen = seen
        self.rows: int | None = None
        self.is_split = False

    def __call__(self, added: DataFrame, number: int) -> None:
        if number:
            self.is_split = True
            return
        spark = added.sparkSession
        self._require_appends(spark)
        frame = view_frame(spark, self._plan.query, [added], self._plan.parameters)
        rows = frame.count()
        if rows and latest_version(spark, self._target) == self._shown_version:
            once = {"txnAppId": self._plan.app_id, "txnVersion": str(self._before + 1)}
            frame.write.format("delta").mode("append").options(**once).save(self._target)
        self.rows = rows

    def _require_appends(self, spark: SparkSession) -> None:
        """Raise ``NotAppended`` where commits that nobody has looked at yet did more than to add rows."""
        url = self._plan.sources[0].url
        # The stream went as far as there were commits when it began, and no further than there are now.
        changes = changes_since(spark, url, self._seen, latest_version(spark, url))
        if changes is None or not changes.is_append:
            raise NotAppended("the source has changed otherwise")


def _stream(spark: SparkSession, url: str, before: int, batch: _Batch) -> int | None:
    """Hand over what was added after a version; return the version until which that was."""
    reader = spark.readStream.format("delta").option("startingVersion", before + 1)
    added = reader.option("maxFilesPerTrigger", _NO_LIMIT).load(url)
    query = added.writeStream.foreachBatch(batch).trigger(availableNow=True).start()
    query.awaitTermination()
    return _end(query.lastProgress)


def _end(progress: Any) -> int | None:
    if progress is None:
        return None
    offset = progress["sources"][0]["endOffset"]
    parsed = json.loads(offset) if isinstance(offset, str) else offset
    if parsed["index"] >= 0:
        raise NotAppended("the stream ended within a commit")
    return int(parsed["reservoirVersion"]) - 1


def _confirm(spark: SparkSession, target: str, before: int, rows: int) -> None:
    """Raise ``NotAppended`` unless one commit has been made since, and with as many rows."""
    now = latest_version(spark, target)
    if now != before + 1:
        raise NotAppended(f"the directory is at version {now}")
    if count_rows(spark, target, now) - count_rows(spark, target, before) != rows:
        raise NotAppended("another attempt has appended other rows")


def count_rows(spark: SparkSession, url: str, version: int) -> int:
    """Return how many rows a version has; Delta knows without reading them."""
    return read_version(spark, url, version).count()
