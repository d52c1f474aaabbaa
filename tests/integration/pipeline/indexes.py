"""A table on disk whose log Spark makes indexes of, and services that read it with them and without."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from gateway.demo.checkpoint import to_checkpoint, to_sidecars, to_v2_checkpoint
from gateway.domain.job import Job, JobKey, JobKind, JobState
from gateway.domain.location import parse_location
from gateway.domain.log import DIRECTORY, SIDECARS, checkpoint_name, commit_name
from gateway.ports import utcnow
from gateway.services.snapshot.log.plan import plan_log, plan_steps
from gateway.services.snapshot.log.reconcile import keys_of
from gateway.services.snapshot.log.schema import VECTOR_ID
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.snapshot import Snapshot
from gateway.work.craft import Plan
from gateway.work.index import IndexCraft, IndexedTable, IndexHome, IndexSizes, LogPlanner
from gateway.work.places import SparkPlaces
from pipeline.jobs.index import run
from pipeline.progress import Progress, ignore
from tests.fakes.storages import FakeStorages
from tests.unit.services.snapshot.index.histories import History, table_actions
from tests.unit.services.snapshot.index.served import Served
from vendors.local.reader import LocalReader
from vendors.local.state import LocalState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "lake.sales.orders"
UUID = "00000000-0000-4000-8000-000000000000"
JOB = Job(
    key=JobKey(kind=JobKind.INDEX, subject=NAME),
    sequence=1,
    state=JobState.RUNNING,
    requested_at=datetime(2025, 1, 1, tzinfo=UTC),
)


class IndexedDisk:
    """A directory with a table's log, and the state beside it."""

    def __init__(self, spark: SparkSession, directory: Path, *, table: Path | None = None) -> None:
        self.spark = spark
        self.table = table or directory / "table"
        self.log_directory = self.table / DIRECTORY
        self.log_directory.mkdir(parents=True, exist_ok=True)
        (directory / "state").mkdir()
        self.state = LocalState(directory / "state")
        location = parse_location(str(self.table))
        self.log = TableLog(location=location, reader=LocalReader(parse_location(str(self.table.parent))))
        self._home = IndexHome(state=self.state, location=parse_location(str(directory / "state")))
        self.craft = self.new_craft(block_rows=8)

    def new_craft(self, *, block_rows: int) -> IndexCraft:
        return IndexCraft(
            home=self._home,
            places=SparkPlaces(FakeStorages()),
            planner=LogPlanner(
                whole=lambda _: plan_log(self.log),
                since=lambda _, version, size, at: plan_steps(self.log, version, size, at),
            ),
            tables=[IndexedTable(name=NAME, location=self.log.location)],
            clock=utcnow,
            sizes=IndexSizes(block_rows=block_rows, small_log=0),
        )

    async def index(self, progress: Progress = ignore) -> dict[str, Any] | None:
        """Plan an index, make it and publish it; return what the job said, if there was any to do."""
        plan = await self.craft.plan(JOB)
        if plan is None:
            return None
        result = self.run(plan, progress)
        await self.craft.publish(JOB, plan, result)
        return result

    def run(self, plan: Plan, progress: Progress = ignore) -> dict[str, Any]:
        return run(self.spark, plan.body, progress)

    def write(self, history: History) -> None:
        """Write the commits of a history that are not there yet."""
        for name, content in history.reader.files.items():
            if not (self.log_directory / name).exists():
                (self.log_directory / name).write_bytes(content)

    def add(self, files: Sequence[dict[str, Any]]) -> None:
        """Write the first commit of a table, with these files."""
        actions = [*table_actions(), *({"add": file} for file in files)]
        text = "\n".join(json.dumps(action) for action in actions)
        (self.log_directory / commit_name(0)).write_text(text)

    def checkpoint(self, history: History, kind: str) -> None:
        """Write a checkpoint of what a history has come to."""
        files = [{"add": add} for add in history.live.values()]
        version = history.version
        if kind == "v2":
            (self.log_directory / SIDECARS).mkdir(exist_ok=True)
            for number, content in enumerate(to_sidecars(files, 2)):
                (self.log_directory / SIDECARS / f"{number}.parquet").write_bytes(content)
            sidecars = [{"sidecar": {"path": f"{number}.parquet", "sizeInBytes": 1}} for number in range(2)]
            actions = [{"checkpointMetadata": {"version": version}}, *table_actions(), *sidecars]
            name = f"{version:020d}.checkpoint.{UUID}.parquet"
            (self.log_directory / name).write_bytes(to_v2_checkpoint(actions))
        elif kind:
            parts = to_checkpoint([*table_actions(), *files], 3 if kind == "parts" else 1)
            for number, content in enumerate(parts, 1):
                (self.log_directory / checkpoint_name(version, number, len(parts))).write_bytes(content)

    def served(self) -> Served:
        return Served(self.log, self.state)

    def direct(self) -> Served:
        return Served(self.log, None)


async def all_rows(served: Served) -> pl.DataFrame:
    """Return all live files in the order of their keys, from wherever they are."""
    snapshot = await served.store.latest(served.log)
    parts = [snapshot.files.rows(0, snapshot.files.height), *await _indexed_rows(served, snapshot)]
    return _ordered(pl.concat(parts))


async def _indexed_rows(served: Served, snapshot: Snapshot) -> Sequence[pl.DataFrame]:
    indexed, shelf = snapshot.indexed, served.store.shelf
    if indexed is None or shelf is None:
        return []
    found = []
    for number in range(indexed.index.zones.height):
        block = await shelf.load(indexed.index, number)
        live = indexed.live(number, block.frame)
        found.append(block.frame if live is None else block.frame.filter(live))
    return found


def _ordered(rows: pl.DataFrame) -> pl.DataFrame:
    keys = keys_of(rows).select(pl.col(VECTOR_ID).fill_null(""))
    return rows.with_columns(keys.to_series()).sort("path", VECTOR_ID)
