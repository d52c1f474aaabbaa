"""The snapshot service on one table, from nothing to the lines of a query, in a process to be measured."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from datetime import timedelta
from pathlib import Path

from bench.engine_worker import peak_memory
from gateway.domain.grant import Audience, Grant
from gateway.domain.key import Key, Keys
from gateway.domain.location import parse_location
from gateway.domain.name import TableName
from gateway.domain.table import AccessMode
from gateway.ports import utcnow
from gateway.services.snapshot.answer.rendered import RenderedPages
from gateway.services.snapshot.file_query import FileQueries, HintSettings
from gateway.services.snapshot.index.shelf import IndexShelf
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.paging import PageLimits
from gateway.services.snapshot.state.index_loading import IndexLoader
from gateway.services.snapshot.state.store import SnapshotStore
from gateway.services.snapshot.token import FileTokens
from gateway.v1 import snapshot_pb2 as pb
from tests.fakes.snapshot_metrics import FakeSnapshotMetrics
from vendors.local.reader import LocalReader
from vendors.local.state import LocalState

MEMORY = 8 * 1024**3
LINES = 64 * 1024 * 1024


class IndexedEngine:
    """Answers as a gateway would that was started a moment ago; without a state it has no index."""

    def __init__(self, table: Path, state: Path | None) -> None:
        self.metrics = FakeSnapshotMetrics()
        indexes = None if state is None else IndexLoader(IndexShelf(LocalState(state), self.metrics))
        store = SnapshotStore(memory=MEMORY, clock=utcnow, metrics=self.metrics, indexes=indexes)
        keys = Keys(current=Key(id="k", secret=b"k" * 32))
        tokens = FileTokens(
            page_keys=keys,
            refresh_keys=keys,
            page_life=timedelta(hours=1),
            refresh_life=timedelta(hours=1),
            clock=utcnow,
        )
        self._queries = FileQueries(
            store=store,
            tokens=tokens,
            limits=PageLimits(files=1000),
            hints=HintSettings(),
            rendered=RenderedPages(LINES, self.metrics),
            metrics=self.metrics,
        )
        location = parse_location(str(table))
        self._log = TableLog(location=location, reader=LocalReader(parse_location(str(table.parent))))
        self._grant = Grant(
            principal="acme",
            audience=Audience.SNAPSHOT,
            table=TableName("retail", "sales", "orders"),
            table_id="00000000-0000-0000-0000-000000000001",
            location=location,
            auxiliary_locations=(),
            access_modes=(AccessMode.URL,),
            history_shared=False,
            generation="g1",
            expires_at=utcnow() + timedelta(hours=1),
        )

    async def query(self, hints: list[str]) -> dict[str, float]:
        """Return what the first line took, and the whole answer: seconds, of the clock and the processor."""
        cpu, wall = time.process_time(), time.perf_counter()
        first: dict[str, float] = {}
        files = 0
        capabilities = pb.ReaderCapabilities(
            response_formats=[pb.RESPONSE_FORMAT_DELTA], reader_features=["deletionvectors"]
        )
        request = pb.QueryRequest(capabilities=capabilities, predicate_hints=hints)
        async for part in self._queries.answer(self._log, self._grant, request):
            if part.WhichOneof("part") == "page":
                files += part.page.files
                first = first or {
                    "first_wall": time.perf_counter() - wall,
                    "first_cpu": time.process_time() - cpu,
                }
        return {
            **first,
            "wall": time.perf_counter() - wall,
            "cpu": time.process_time() - cpu,
            "files": files,
        }


if __name__ == "__main__":
    table, state, *hints = sys.argv[1:]
    engine = IndexedEngine(Path(table), Path(state) if state else None)
    before = peak_memory("self")
    taken = asyncio.run(engine.query(hints))
    used = "used" in engine.metrics.indexes
    print(json.dumps({**taken, "before": before, "peak": peak_memory("self"), "used": used}))
