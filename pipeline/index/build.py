"""Makes an index of a log: from its checkpoint on, or from the index before by what was committed since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from gateway.errors import Internal, Unsupported
from pipeline.index.actions import (
    ADD,
    VECTOR,
    Said,
    adds_of,
    last_changes,
    look_at_checkpoint,
    look_at_commits,
    read_checkpoint,
    read_commits,
    vector_id,
)
from pipeline.index.blocks import with_statistics, write_blocks
from pipeline.index.columns import TypedColumn, typed_columns
from pipeline.index.zones import find_zones, write_zones
from pipeline.progress import Progress

# How many blocks one task writes.
_PER_TASK: Final = 16
_STEPS: Final = 4
_SLOT: Final = "slot"
_KEY: Final = ["path", VECTOR]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexBuild:
    spark: SparkSession
    plan: Mapping[str, Any]
    progress: Progress

    def run(self) -> dict[str, Any]:
        """Write blocks and zones; return what a manifest says of them. Nothing points to them yet."""
        urls = self._log_urls(self.plan["commits"])
        commits = read_commits(self.spark, urls) if urls else None
        said = Said(table={}, adds=0) if commits is None else look_at_commits(commits)
        base = self.plan.get("base")
        return self._from_log(commits, said) if base is None else self._from_base(base, commits, said)

    def _from_log(self, commits: DataFrame | None, said: Said) -> dict[str, Any]:
        urls = self._log_urls([*self.plan["checkpoint"], *self.plan["sidecars"]])
        checkpoint = read_checkpoint(self.spark, urls) if urls else None
        listed = Said(table={}, adds=0) if checkpoint is None else look_at_checkpoint(checkpoint)
        table = _require_table({**listed.table, **said.table})
        columns = typed_columns(table["metaData"])
        self.progress("reading the log", 1, _STEPS)
        rows = _live(None if checkpoint is None else adds_of(checkpoint), commits)
        count = listed.adds + said.adds
        tasks = max(1, -(-count // (_PER_TASK * self._block_rows)))
        # Before anything is made of the rows: to find where to cut them takes a look at all.
        ordered = rows.repartitionByRange(tasks, *_KEY).sortWithinPartitions(*_KEY)
        write_blocks(with_statistics(ordered, columns), self._blocks_url, self._block_rows)
        self.progress("blocks are written", 2, _STEPS)
        zones = find_zones(self.spark, self._blocks_url, self._name, columns)
        return self._finish(zones, columns, table, kind="full")

    def _from_base(self, base: Mapping[str, Any], commits: DataFrame | None, said: Said) -> dict[str, Any]:
        before = self.spark.read.parquet(f"{self.plan['root_url']}/{base['zones']}")
        table = {name: said.table.get(name, base[name]) for name in ("protocol", "metaData")}
        columns = typed_columns(table["metaData"])
        slots = _slots(before)
        changes = None if commits is None else _placed(last_changes(commits), slots)
        is_same = [column.to_json() for column in columns] == list(base["columns"])
        touched = self._touched(changes, slots, is_same=is_same)
        self.progress("reading the commits", 1, _STEPS)
        if not touched:
            return self._finish(before, columns, table, kind="none")
        rows = self._merged(changes, slots, touched)
        ordered = rows.repartition(max(1, -(-len(touched) // _PER_TASK)), _SLOT)
        made = with_statistics(ordered.sortWithinPartitions(_SLOT, *_KEY), columns, [_SLOT])
        write_blocks(made, self._blocks_url, self._block_rows, by=_SLOT)
        self.progress("blocks are written", 2, _STEPS)
        # There may be none, from which nothing can be told of their columns.
        found = find_zones(self.spark, self._blocks_url, self._name, columns, schema=made.schema)
        if is_same:
            left = before.join(sf.broadcast(slots.select("file", _SLOT)), "file")
            found = found.unionByName(left.filter(~sf.col(_SLOT).isin(touched)).select(*found.columns))
        return self._finish(found, columns, table, kind="incremental")

    def _touched(self, changes: DataFrame | None, slots: DataFrame, *, is_same: bool) -> list[int]:
        """Return which blocks of the index before are made anew: those that commits touch, or all."""
        if not is_same:
            return [row[0] for row in slots.select(_SLOT).collect()]
        return [] if changes is None else [row[0] for row in changes.select(_SLOT).distinct().collect()]

    def _merged(self, changes: DataFrame | None, slots: DataFrame, touched: Sequence[int]) -> DataFrame:
        """Return the live files of some blocks, each with the number of the block that it goes to."""
        files = slots.filter(sf.col(_SLOT).isin(list(touched))).select("file", _SLOT, "rows")
        blocks = files.collect()
        urls = [f"{self.plan['root_url']}/{block['file']}" for block in blocks]
        before = self.spark.read.parquet(*urls).select(*ADD, self._file())
        before = before.join(sf.broadcast(files.drop("rows")), "file").drop("file")
        if before.count() != sum(block["rows"] for block in blocks):
            raise Internal("the blocks of the index before do not have the files that their zones say")
        before = before.withColumn(VECTOR, vector_id(sf.col("deletionVector")))
        if changes is None:
            return before
        added = changes.filter("add is not null").select("add.*", _SLOT, VECTOR)
        return before.join(changes.select(*_KEY), _KEY, "left_anti").unionByName(added)

    def _file(self) -> Column:
        """Return which block a row was read from, by its name below the table's indexes."""
        # The last of that name: what the state's own place is called, and how Spark spells it, is not known.
        root = str(self.plan["root_url"]).rstrip("/").rpartition("/")[2]
        return sf.regexp_extract("_metadata.file_path", rf"(?s)^.*/{root}/(.+)\z", 1).alias("file")

    def _finish(
        self,
        zones: DataFrame,
        columns: Sequence[TypedColumn],
        table: Mapping[str, Mapping[str, Any]],
        *,
        kind: str,
    ) -> dict[str, Any]:
        key, length, digest = write_zones(
            self.spark, zones, f"{self.plan['root_url']}/{self._name}/zones", self._name
        )
        self.progress("zones are written", 3, _STEPS)
        written = self.spark.read.parquet(f"{self.plan['root_url']}/{key}")
        blocks, files, size, vectors, fresh = written.agg(
            sf.count("*"), sf.sum("rows"), sf.sum("size"), sf.sum("vectors"), sf.count(self._is_fresh())
        ).collect()[0]
        uses = written.select(sf.substring_index("file", "/", 1)).distinct().collect()
        self.progress("done", _STEPS, _STEPS)
        return {
            "name": self._name,
            "version": self.plan["version"],
            "kind": kind,
            "num_files": files or 0,
            "size": size or 0,
            "vectors": vectors or 0,
            "blocks": blocks,
            "blocks_written": fresh,
            # The indexes whose files it has: its own, and those before it that it was made from.
            "uses": sorted(row[0] for row in uses),
            "columns": [column.to_json() for column in columns],
            "zones": {"key": key, "size": length, "sha256": digest},
            **table,
        }

    def _is_fresh(self) -> Any:
        return sf.when(sf.col("file").startswith(f"{self._name}/"), 1)

    def _log_urls(self, names: Sequence[str]) -> list[str]:
        return [f"{self.plan['table_url']}/_delta_log/{name}" for name in names]

    @property
    def _name(self) -> str:
        return str(self.plan["target_name"])

    @property
    def _blocks_url(self) -> str:
        return f"{self.plan['root_url']}/{self._name}/blocks"

    @property
    def _block_rows(self) -> int:
        return int(self.plan["block_rows"])


def _live(listed: DataFrame | None, commits: DataFrame | None) -> DataFrame:
    """Return the files that a checkpoint lists and no commit touched since, and those that commits added."""
    changes = None if commits is None else last_changes(commits)
    added = None if changes is None else changes.filter("add is not null").select("add.*", VECTOR)
    if listed is None:
        if added is None:
            raise Unsupported("the plan names no file of the log")
        return added
    listed = listed.drop("stats_parsed")
    if changes is None or added is None:
        return listed
    return listed.join(changes.select(*_KEY), _KEY, "left_anti").unionByName(added)


def _slots(zones: DataFrame) -> DataFrame:
    """Return blocks by number, in the order of their keys; each reaches to where the next one begins."""
    in_order = Window.orderBy("first_path", "first_vector")
    number = sf.row_number().over(in_order) - 1
    return zones.select(
        number.alias(_SLOT),
        "file",
        "rows",
        # What comes before all of them goes to the first.
        sf.when(number > 0, sf.col("first_path")).otherwise("").alias("from_path"),
        sf.when(number > 0, sf.col("first_vector")).otherwise("").alias("from_vector"),
        sf.lead("first_path").over(in_order).alias("to_path"),
        sf.lead("first_vector").over(in_order).alias("to_vector"),
    )


def _placed(changes: DataFrame, slots: DataFrame) -> DataFrame:
    """Return changes with the number of the block that each belongs to."""
    key = sf.struct("path", VECTOR)
    begins = sf.struct(sf.col("from_path"), sf.col("from_vector"))
    ends = sf.struct(sf.col("to_path"), sf.col("to_vector"))
    within = (key >= begins) & (sf.col("to_path").isNull() | (key < ends))
    ranges = sf.broadcast(slots.drop("file", "rows"))
    return changes.join(ranges, within).select(*changes.columns, _SLOT)


def _require_table(table: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    for action in ("protocol", "metaData"):
        if action not in table:
            raise Unsupported(f"the log is damaged: it has no {action} action")
    return table
