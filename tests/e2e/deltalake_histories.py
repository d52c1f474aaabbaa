"""Runs in the clients' environment: histories that deltalake writes at random, the same in every run."""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from tests.e2e.deltalake_tables import FEED, Write, vacuum

COMMITS = 13
_PARTS = ("north", "south", None)
_CHECKPOINT_CHANCE = 0.2
_STEPS = (
    *(
        "append",
        "delete",
        "update",
        "merge",
        "overwrite",
        "replace",
        "compact",
        "z_order",
        "vacuum",
        "restore",
    ),
    *("add_column", "merge_schema", "set_property", "delete", "update", "merge"),
)
_EVOLVING = frozenset({"add_column", "merge_schema"})
# What deltalake does not do to a table whose columns are mapped.
_NOT_MAPPED = _EVOLVING | {"compact", "z_order"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a history's table is like from the start."""

    partitioned: bool = False
    feed: bool = False
    evolving: bool = False
    # Whether files may go that an older version needs.
    vacuumed: bool = False
    mapping: str = "none"
    interval: int = 5

    def properties(self) -> dict[str, str]:
        found = {"delta.checkpointInterval": str(self.interval)}
        if self.mapping != "none":
            found["delta.columnMapping.mode"] = self.mapping
        return found | (FEED if self.feed else {})

    def steps(self) -> list[str]:
        unfit = _NOT_MAPPED if self.mapping != "none" else frozenset()
        return [name for name in _STEPS if name not in unfit and (self.evolving or name not in _EVOLVING)]


class RandomHistory:
    def __init__(self, directory: str, random: Random, shape: Shape) -> None:
        self._directory = directory
        self._random = random
        self._shape = shape
        self._next_id = 0
        self._next_column = 0
        # What came before has lost its files.
        self._oldest = 0

    def write(self) -> None:
        by = ["part"] if self._shape.partitioned else None
        write_deltalake(
            self._directory, self._rows(), partition_by=by, configuration=self._shape.properties()
        )
        steps: list[str] = []
        while self._table().version() < COMMITS - 1:
            # As cards are dealt: each kind comes before one comes again, if it changes anything then.
            steps = steps or self._random.sample(self._shape.steps(), len(self._shape.steps()))
            getattr(self, f"_{steps.pop()}")()
            if self._random.random() < _CHECKPOINT_CHANCE:
                self._table().create_checkpoint()

    def _append(self) -> None:
        write_deltalake(self._directory, self._rows(), mode="append")

    def _overwrite(self) -> None:
        write_deltalake(self._directory, self._rows(), mode="overwrite")

    def _replace(self) -> None:
        rows = self._rows()
        rows = rows.set_column(rows.schema.get_field_index("part"), "part", pa.array(["south"] * len(rows)))
        write_deltalake(self._directory, rows, mode="overwrite", predicate="part = 'south'")

    def _delete(self) -> None:
        self._table().delete(self._some())

    def _update(self) -> None:
        self._table().update({"n": "n + 1"}, predicate=self._some())

    def _merge(self) -> None:
        known = self._random.sample(range(self._next_id), min(4, self._next_id))
        ids = [*known, self._take_id(), self._take_id()]
        source = pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array(range(len(ids)), pa.int32())})
        (
            self._table()
            .merge(source, "t.id = s.id", source_alias="s", target_alias="t")
            .when_matched_delete("s.n % 2 = 1")
            .when_matched_update({"n": "s.n"})
            .when_not_matched_insert({"id": "s.id", "part": "'north'", "n": "s.n"})
            .execute()
        )

    def _compact(self) -> None:
        self._table().optimize.compact()

    def _z_order(self) -> None:
        self._table().optimize.z_order(["id"])

    def _vacuum(self) -> None:
        version = self._table().version()
        # Later on it would leave nothing to compare.
        full = self._shape.vacuumed and version < COMMITS // 2
        if full:
            self._oldest = version
        vacuum(self._table(), hours=0 if full else 200)

    def _restore(self) -> None:
        latest = self._table().version()
        if self._oldest < latest:
            self._table().restore(self._random.randrange(self._oldest, latest))

    def _add_column(self) -> None:
        self._table().alter.add_columns([Field(self._take_name(), PrimitiveType("string"))])

    def _merge_schema(self) -> None:
        rows = self._rows()
        wider = rows.append_column(self._take_name(), pa.array([1.5] * len(rows)))
        write_deltalake(self._directory, wider, mode="append", schema_mode="merge")

    def _set_property(self) -> None:
        note = {"delta.checkpointInterval": str(self._random.randrange(3, 9))}
        self._table().alter.set_table_properties(note)

    def _rows(self) -> pa.Table:
        rows = [self._row() for _ in range(self._random.randrange(3, 9))]
        schema = pa.schema({"id": pa.int64(), "part": pa.string(), "n": pa.int32(), "s": pa.string()})
        table = pa.Table.from_pylist(rows, schema)
        if not DeltaTable.is_deltatable(self._directory):
            return table
        # A column that came later takes nulls; a write names every column.
        later = pa.schema(self._table().schema().to_arrow())
        for field in later:
            if field.name not in table.schema.names:
                table = table.append_column(field, pa.nulls(len(table), field.type))
        return table.select(later.names)

    def _row(self) -> dict[str, Any]:
        return {
            "id": self._take_id(),
            "part": self._random.choice(_PARTS),
            "n": None if self._random.random() < 0.2 else self._random.randrange(1000),
            "s": self._random.choice(("x", "grün", "a b", "", None)),
        }

    def _some(self) -> str:
        divisor = self._random.randrange(2, 6)
        return f"id % {divisor} = {self._random.randrange(divisor)}"

    def _table(self) -> DeltaTable:
        return DeltaTable(self._directory)

    def _take_id(self) -> int:
        self._next_id += 1
        return self._next_id

    def _take_name(self) -> str:
        self._next_column += 1
        return f"c{self._next_column}"


_SHAPES = (
    Shape(evolving=True, vacuumed=True),
    Shape(evolving=True, partitioned=True, interval=3),
    Shape(mapping="name", partitioned=True),
    Shape(mapping="id", interval=3, vacuumed=True),
    Shape(feed=True),
    Shape(feed=True, interval=3, vacuumed=True),
    Shape(feed=True, partitioned=True),
    Shape(feed=True, evolving=True),
    Shape(feed=True, evolving=True, partitioned=True, interval=3, vacuumed=True),
    Shape(feed=True, mapping="name", partitioned=True),
)


def _write(directory: str, *, seed: int) -> None:
    RandomHistory(directory, Random(seed), _SHAPES[seed]).write()


HISTORY_TABLES: Mapping[str, Write] = {
    f"history_{seed}": partial(_write, seed=seed) for seed in range(len(_SHAPES))
}
