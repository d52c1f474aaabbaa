"""The snapshot service's own engine, without anything around it, in a process to be measured."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bench.engine_worker import serve
from gateway.domain.location import parse_location
from gateway.ports import utcnow
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.snapshot import Snapshot
from gateway.services.snapshot.state.store import SnapshotStore
from tests.fakes.snapshot_metrics import FakeSnapshotMetrics
from vendors.local.reader import LocalReader

MEMORY = 4 * 1024**3


class OwnEngine:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._store = new_store()
        self._log: TableLog | None = None

    def load(self, directory: str) -> int:
        self._store = new_store()
        self._log = log_of(Path(directory))
        return self.refresh()

    def refresh(self) -> int:
        return self.snapshot().files.num_files

    def snapshot(self) -> Snapshot:
        assert self._log is not None
        return self._loop.run_until_complete(self._store.latest(self._log))

    def close(self) -> None:
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


def log_of(directory: Path) -> TableLog:
    prefix = parse_location(str(directory.parent))
    return TableLog(location=parse_location(str(directory)), reader=LocalReader(prefix))


def new_store() -> SnapshotStore:
    return SnapshotStore(memory=MEMORY, clock=utcnow, metrics=FakeSnapshotMetrics())


if __name__ == "__main__":
    engine = OwnEngine()
    serve({"load": engine.load, "refresh": engine.refresh})
    engine.close()
