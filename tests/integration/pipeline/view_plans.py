"""Plans of views over tables on this disk, as the gateway makes them one after the other."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.jobs import view
from pipeline.progress import ignore
from tests.spark import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ViewOnDisk:
    """A view that is refreshed again and again; it remembers what was published last."""

    def __init__(self, spark: SparkSession, root: Path, query: str, *sources: Path, **changes: Any) -> None:
        self.spark = spark
        self.root = root
        self.current: dict[str, Any] | None = None
        self._query = query
        self._sources = [{"name": f"s.s.t{at}", "url": str(path)} for at, path in enumerate(sources)]
        self._changes = changes
        self._attempts = 0

    def copied(self, root: Path, *sources: Path) -> ViewOnDisk:
        """Return the view as it is now, over copies of its sources; its directories are copied, too."""
        copy = ViewOnDisk(self.spark, root, self._query, *sources, **self._changes)
        shutil.copytree(self.root, root)
        copy.current = self.current
        copy._attempts = self._attempts
        return copy

    def plan(self, **changes: Any) -> dict[str, Any]:
        """Return the plan of the next attempt."""
        self._attempts += 1
        planned = {
            "query": self._query,
            "sources": self._sources,
            "parameters": {},
            "appendable": True,
            "root_url": f"file:{self.root}",
            "current": self.current,
            "fresh_name": f"attempt-{self._attempts}",
            "app_id": "fingerprint",
            "delete": [],
        }
        return planned | self._changes | changes

    def refresh(self, **changes: Any) -> dict[str, Any]:
        """Run the job, and publish its result."""
        return self.publish(view.run(self.spark, self.plan(**changes), ignore))

    def publish(self, result: Mapping[str, Any]) -> dict[str, Any]:
        self.current = {name: result[name] for name in ("name", "version", "sources")}
        return dict(result)

    @property
    def directory(self) -> Path:
        assert self.current is not None
        return self.root / str(self.current["name"])

    def rows(self) -> list[tuple[Any, ...]]:
        """Return what recipients are shown, with the latest version as those of a directory see it."""
        return rows_of(self.spark, self.directory)
