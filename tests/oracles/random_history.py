"""Runs in the clients' environment: histories of tables at random, the same ones in every run."""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped, no-any-return"

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.oracles.plan import COMMITS
from tests.oracles.spark_table import SparkTable

_PARTS = ("north", "south", "a b", "50%", None)
_CHECKPOINT_CHANCE = 0.15
# What each step is worth: some take Spark ten times as long as others.
_WEIGHTS = {
    "append": 5,
    "delete": 4,
    "update": 3,
    "merge": 2,
    "overwrite": 1,
    "optimize": 2,
    "vacuum": 1,
    "restore": 1,
    "add_column": 1,
    "rename_column": 1,
    "drop_column": 1,
    "set_property": 1,
}
_LITERALS: Mapping[str, Callable[[Random], str]] = {
    "long": lambda random: str(random.randrange(1000)),
    "integer": lambda random: str(random.randrange(1000)),
    "double": lambda random: f"{random.randrange(1000)}.25D",
    "string": lambda random: f"'{random.choice(('x', 'grün', 'a b', ''))}{random.randrange(100)}'",
    "date": lambda random: f"DATE'2024-{random.randrange(1, 13):02}-{random.randrange(1, 28):02}'",
}
_NEW_TYPES = ("INT", "DOUBLE", "STRING", "DATE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a history's table is like from the start."""

    partitioned: bool
    vectors: bool
    feed: bool
    mapping: str
    v2_checkpoints: bool
    times_in_commits: bool
    row_tracking: bool
    interval: int

    def properties(self) -> str:
        found = {
            "delta.checkpointInterval": str(self.interval),
            "delta.enableDeletionVectors": _text(self.vectors),
            "delta.enableChangeDataFeed": _text(self.feed),
            "delta.enableInCommitTimestamps": _text(self.times_in_commits),
            "delta.enableRowTracking": _text(self.row_tracking),
            "delta.columnMapping.mode": self.mapping,
            "delta.checkpointPolicy": "v2" if self.v2_checkpoints else "classic",
        }
        return ", ".join(f"'{name}' = '{value}'" for name, value in found.items())


def shape_of(random: Random) -> Shape:
    return Shape(
        partitioned=random.random() < 0.5,
        vectors=random.random() < 0.5,
        feed=random.random() < 0.8,
        mapping=random.choice(("none", "none", "name", "id")),
        v2_checkpoints=random.random() < 0.25,
        times_in_commits=random.random() < 0.25,
        row_tracking=random.random() < 0.2,
        interval=random.choice((3, 5, 10)),
    )


def write_history(table: SparkTable, seed: int) -> None:
    RandomHistory(table, Random(seed)).write()


class RandomHistory:
    def __init__(self, table: SparkTable, random: Random) -> None:
        self._table = table
        self._random = random
        self._shape = shape_of(random)
        self._next_id = 0
        self._next_column = 0
        # What came before has lost its files.
        self._oldest = 0

    def write(self) -> None:
        self._create()
        while self._table.latest < COMMITS:
            self._step()
            if self._random.random() < _CHECKPOINT_CHANCE:
                self._table.checkpoint()
        if self._shape.feed:
            self._record_changes()

    def _create(self) -> None:
        partition = "PARTITIONED BY (part)" if self._shape.partitioned else ""
        self._table.run(
            f"CREATE TABLE @T (id BIGINT, part STRING, n INT, s STRING) USING delta {partition} "
            f"TBLPROPERTIES ({self._shape.properties()})"
        )
        self._append()

    def _step(self) -> None:
        names = [name for name in _WEIGHTS if self._shape.mapping != "none" or name not in _MAPPED_ONLY]
        (name,) = self._random.choices(names, [_WEIGHTS[name] for name in names])
        getattr(self, f"_{name}")()

    def _append(self) -> None:
        self._table.run(f"INSERT INTO @T {self._rows(self._random.randrange(3, 12))}")

    def _overwrite(self) -> None:
        self._table.run(f"INSERT OVERWRITE @T {self._rows(self._random.randrange(3, 12))}")

    def _delete(self) -> None:
        self._table.run(f"DELETE FROM @T WHERE {self._some()}")

    def _update(self) -> None:
        self._table.run(f"UPDATE @T SET n = n + 1 WHERE {self._some()}")

    def _merge(self) -> None:
        known = max(self._next_id, 1)
        rows = ", ".join(
            f"({self._random.randrange(known) if index % 2 else self._take_id()}, {index}, {index % 3 == 1})"
            for index in range(6)
        )
        self._table.run(
            f"MERGE INTO @T t USING (SELECT id, first(n) n, first(gone) gone FROM VALUES {rows} "
            "AS v(id, n, gone) GROUP BY id) s ON t.id = s.id "
            "WHEN MATCHED AND s.gone THEN DELETE WHEN MATCHED THEN UPDATE SET t.n = s.n "
            "WHEN NOT MATCHED THEN INSERT (id, part, n) VALUES (s.id, 'merged', s.n)"
        )

    def _optimize(self) -> None:
        self._table.run("OPTIMIZE @T")

    def _vacuum(self) -> None:
        if self._random.random() < 0.3:
            self._oldest = self._table.latest
            self._table.run("VACUUM @T LITE RETAIN 0 HOURS")
        else:
            self._table.run("VACUUM @T LITE RETAIN 168 HOURS")

    def _restore(self) -> None:
        version = self._random.randrange(self._oldest, self._table.latest + 1)
        self._table.run(f"RESTORE TABLE @T TO VERSION AS OF {version}")

    def _add_column(self) -> None:
        kind = self._random.choice(_NEW_TYPES)
        self._table.run(f"ALTER TABLE @T ADD COLUMNS ({self._take_name()} {kind})")

    def _rename_column(self) -> None:
        if spare := self._spare():
            self._table.run(f"ALTER TABLE @T RENAME COLUMN {spare} TO {self._take_name()}")

    def _drop_column(self) -> None:
        if spare := self._spare():
            self._table.run(f"ALTER TABLE @T DROP COLUMN {spare}")

    def _set_property(self) -> None:
        self._table.run(f"ALTER TABLE @T SET TBLPROPERTIES ('note' = '{self._random.randrange(99)}')")

    def _record_changes(self) -> None:
        """Put down the changes of every version: all at once, or one by one where Spark refuses the whole."""
        latest = self._table.latest
        if not self._table.record_changes(0, latest):
            for version in range(latest + 1):
                self._table.record_changes(version, version)

    def _rows(self, count: int) -> str:
        columns = self._columns()
        rows = ", ".join(f"({', '.join(self._values(columns))})" for _ in range(count))
        return f"({', '.join(columns)}) VALUES {rows}"

    def _values(self, columns: Mapping[str, str]) -> list[str]:
        values = {name: _LITERALS[kind](self._random) for name, kind in columns.items()}
        part = self._random.choice(_PARTS)
        nulls = {name for name in columns if self._random.random() < 0.1}
        fixed = {"id": str(self._take_id()), "part": f"'{part}'" if part else "NULL"}
        return [fixed.get(name) or ("NULL" if name in nulls else value) for name, value in values.items()]

    def _columns(self) -> dict[str, str]:
        """Return the columns as they are now, which a restore may have changed."""
        schema = json.loads(self._table.metadata_of(self._table.latest)["schemaString"])
        return {field["name"]: field["type"] for field in schema["fields"]}

    def _spare(self) -> str | None:
        spare = [name for name in self._columns() if name not in {"id", "part", "n"}]
        return self._random.choice(spare) if spare else None

    def _some(self) -> str:
        divisor = self._random.randrange(2, 6)
        return f"id % {divisor} = {self._random.randrange(divisor)}"

    def _take_id(self) -> int:
        self._next_id += 1
        return self._next_id

    def _take_name(self) -> str:
        self._next_column += 1
        return f"c{self._next_column}"


_MAPPED_ONLY = frozenset({"rename_column", "drop_column"})


def _text(value: Any) -> str:
    return "true" if value else "false"
