"""On random tables and random predicates, no file is left out that holds a row DuckDB finds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.domain.location import parse_location
from gateway.domain.log import DIRECTORY
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.predicate.hints import Hints, parse_hints
from gateway.services.snapshot.predicate.prune import find_kept
from gateway.services.snapshot.state.snapshot import Snapshot
from gateway.services.snapshot.state.store import SnapshotStore
from tests.builders import STARTED_AT
from tests.components import DELTALAKE, DUCKDB
from tests.e2e.official_client import OfficialClient
from tests.fakes.log_reader import FakeLogReader
from tests.fakes.snapshot_metrics import FakeSnapshotMetrics
from tests.oracles.predicate_tables import HAND, RandomTable, make_table, write_log
from tests.oracles.predicate_trees import Predicate, make_predicates

pytestmark = pytest.mark.component(DUCKDB, DELTALAKE)

TABLES_IN_A_GROUP = 10
PREDICATES = 40
GROUPS = [
    *(f"group-{number}" for number in range(4)),
    *(pytest.param(f"group-{number}", marks=pytest.mark.deep) for number in (4, 5)),
    *(pytest.param(f"deep-{number}", marks=pytest.mark.deep) for number in range(60)),
]
# Below what every group comes to: leaving out nothing, or using no hint, would never be wrong.
LEAST_LEFT_OUT = 0.65
LEAST_USED = 0.85

Counts = dict[str, Counter[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    kind: str
    sql: tuple[str, ...] = ()
    json: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A table as the service reads it."""

    table: RandomTable
    snapshot: Snapshot
    # Which of the table's files each of the snapshot's rows is.
    numbers: list[int]

    def find_kept(self, hints: Hints) -> set[int]:
        mask = find_kept(self.snapshot.files, hints)
        return set(self.numbers) if mask is None else {self.numbers[row] for row in mask.arg_true()}


@pytest.fixture(scope="module")
def duckdb() -> Iterator[OfficialClient]:
    client = OfficialClient("tests.oracles.duckdb_matches")
    yield client
    client.close()


@pytest.mark.parametrize("group", GROUPS)
async def test_no_file_that_holds_a_matching_row_is_left_out(duckdb, tmp_path, group):
    counts: Counts = {}
    for number in range(TABLES_IN_A_GROUP):
        table = make_table(group, number)
        written = await write_table(duckdb, table, tmp_path / str(number), group)
        predicates = make_predicates(group, table, PREDICATES)
        matching = duckdb.call("find_matches", table.to_plain(), [asked.duckdb for asked in predicates])

        for predicate, files in zip(predicates, matching, strict=True):
            check(written, predicate, set(files), counts)

    total = sum(counts.values(), Counter())
    assert total["left out"] > LEAST_LEFT_OUT * total["without a match"], counts
    assert total["used"] > LEAST_USED * total["hints"], counts


async def write_table(duckdb: OfficialClient, table: RandomTable, directory: Path, group: str) -> Written:
    if table.writer == HAND:
        write_log(table, directory, group)
    else:
        # With a checkpoint, statistics are read from its columns, and not from JSON.
        duckdb.call("write", str(directory), table.to_plain(), checkpoint=table.number % 2 == 0)
    store = SnapshotStore(memory=2**20, clock=lambda: STARTED_AT, metrics=FakeSnapshotMetrics())
    log = TableLog(location=parse_location(str(directory)), reader=FakeLogReader())
    snapshot = await store.latest(log)
    added = paths_of(directory)
    assert len(added) == snapshot.files.height == len(table.files)
    paths = snapshot.files.rows(0, snapshot.files.height)["path"]
    return Written(table=table, snapshot=snapshot, numbers=[added.index(path) for path in paths])


def paths_of(directory: Path) -> list[str]:
    """Return the paths of a table's files, in the order in which they were added."""
    commits = sorted((directory / DIRECTORY).glob("*.json"))
    actions = [json.loads(line) for commit in commits for line in commit.read_text().splitlines()]
    return [action["add"]["path"] for action in actions if "add" in action]


def check(written: Written, predicate: Predicate, matching: set[int], counts: Counts) -> None:
    """Assert that nothing is lost, and count what is left out."""
    for hint in hints_of(predicate):
        hints = parse_hints(hint.sql, hint.json, written.snapshot.metadata)
        kept = written.find_kept(hints)

        assert matching <= kept, describe(written.table, predicate, matching - kept, hint)
        found = counts.setdefault(f"{hint.kind}, with statistics by {written.table.writer}", Counter())
        found["left out"] += len(written.numbers) - len(kept)
        found["without a match"] += len(written.numbers) - len(matching)
        found["used"] += sum(hints.used.values())
        found["hints"] += sum(hints.used.values()) + sum(hints.skipped.values())


def hints_of(predicate: Predicate) -> Iterator[Hint]:
    """Yield the hints that say the same: in SQL, in JSON, and in both as Spark sends them."""
    yield Hint(kind="SQL", sql=(predicate.sql,))
    if predicate.json is not None:
        yield Hint(kind="JSON", json=json.dumps(predicate.json))
        if predicate.parts:
            yield Hint(kind="SQL and JSON", sql=predicate.parts, json=json.dumps(predicate.json))


def describe(table: RandomTable, predicate: Predicate, lost: set[int], hint: Hint) -> str:
    files = {number: table.files[number].rows for number in sorted(lost)}
    return (
        f"table {table.number} in the zone {table.zone}: {hint} loses {files} of {table.columns}, "
        f"where DuckDB finds a row: {predicate.duckdb}"
    )
