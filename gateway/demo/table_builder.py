"""Writes Delta tables to a local directory: real ones, and the same bytes each time."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, Self, TypeAlias
from urllib.parse import unquote

import polars as pl

from gateway.demo.column_mapping import MAX_ID, MODE, map_columns, physical_name, to_physical
from gateway.demo.data_file import DataFile, to_data_file
from gateway.demo.deletion_vector import inline_vector, vector_file, vector_path
from gateway.demo.log_builder import STARTED_AT, STEP, LogBuilder, table_id, to_ms
from gateway.demo.partition import directory_of, log_path, partition_text
from gateway.demo.schema import Field, polars_schema, polars_type, schema_string
from gateway.demo.table_state import Action

__all__ = ["PLAIN_PROTOCOL", "STARTED_AT", "STEP", "Action", "Rows", "TableBuilder"]

Rows: TypeAlias = pl.DataFrame | Sequence[Mapping[str, Any]]
Values: TypeAlias = Mapping[str, str | None]
VectorStorage: TypeAlias = Literal["i", "u", "p"]

PLAIN_PROTOCOL: Final[Action] = {"minReaderVersion": 1, "minWriterVersion": 2}
CHANGE_TYPE: Final = "_change_type"

_CHANGE_FEED: Final = "delta.enableChangeDataFeed"
_CHANGES: Final = "_change_data"
# From here on a table may have what a reader of changes asks removals for.
_TELLING_WRITER: Final = 4


class TableBuilder(LogBuilder):
    """A table under construction. Each verb that changes it is a commit."""

    def __init__(
        self,
        directory: Path,
        fields: Sequence[Field],
        *,
        partition_by: Sequence[str] = (),
        protocol: Action = PLAIN_PROTOCOL,
        metadata: Action | None = None,
    ) -> None:
        self._fields = tuple(fields)
        self._partition_by = tuple(partition_by)
        # The rows of data files that deletion vectors took, by the files' paths in the log.
        self._deleted: dict[str, frozenset[int]] = {}
        first = self._first_metadata(directory.name) | dict(metadata or {})
        if first["configuration"].get(MODE, "none") != "none":
            first |= self._mapped(self._fields, first)
        super().__init__(directory, protocol=protocol, metadata=first)

    def create(self) -> Self:
        """Commit without a file: the table is there, and empty."""
        return self.commit()

    def append(self, rows: Rows, *, stats: bool = True, files: int = 1) -> Self:
        """Add rows, in so many files for each combination of partition values."""
        return self.commit(*self._write(rows, stats=stats, files=files))

    def overwrite(self, rows: Rows) -> Self:
        """Put rows in the place of all that is there."""
        return self.commit(*self.remove(*self.live), *self._write(rows, stats=True, files=1))

    def delete(self, where: pl.Expr) -> Self:
        """Delete rows by a condition on data columns, and write anew the files that keep some."""
        actions: list[Action] = []
        for path in self.live:
            rows = self.rows_of(path)
            gone, kept = rows.filter(where), rows.remove(where)
            if gone.height:
                actions += self._rewrite(path, kept, _changed(gone, "delete"))
        return self.commit(*actions, operation="DELETE")

    def update(self, where: pl.Expr, **columns: pl.Expr) -> Self:
        """Give columns other values where a condition is met, and write anew the files with such rows."""
        actions: list[Action] = []
        for path in self.live:
            rows = self.rows_of(path)
            before, kept = rows.filter(where), rows.remove(where)
            if before.height:
                after = before.with_columns(**columns).cast(before.schema)
                changes = [_changed(before, "update_preimage"), _changed(after, "update_postimage")]
                actions += self._rewrite(path, pl.concat([kept, after]), pl.concat(changes))
        return self.commit(*actions, operation="UPDATE")

    def delete_by_vector(self, where: pl.Expr, storage: VectorStorage = "u", *, prefix: str = "") -> Self:
        """Delete rows by a condition on data columns, and leave the files as they are."""
        marked: dict[str, frozenset[int]] = {}
        for path in self.live:
            rows = self._numbered_rows(path)
            if hit := frozenset(rows.filter(where)["row"]):
                marked[path] = self._deleted.get(path, frozenset()) | hit
        vectors = self._write_vectors(list(marked.values()), storage, prefix)
        adds = [self._with_vector(path, vector) for path, vector in zip(marked, vectors, strict=True)]
        removes = self.remove(*marked)
        self._deleted |= marked
        return self.commit(*removes, *adds, operation="DELETE")

    def delete_files(self, *paths: str) -> Self:
        return self.commit(*self.remove(*paths))

    def describe(self, **metadata: Any) -> Self:
        """Change fields of the table's metaData."""
        return self.commit({"metaData": {**self.metadata, **metadata}})

    def upgrade(self, **protocol: Any) -> Self:
        return self.commit({"protocol": protocol})

    def rename_column(self, name: str, new: str) -> Self:
        """Call a mapped column otherwise; no file is touched."""
        self._fields = tuple(replace(each, name=new) if each.name == name else each for each in self._fields)
        self._partition_by = tuple(new if each == name else each for each in self._partition_by)
        return self.describe(
            schemaString=schema_string(self._fields), partitionColumns=list(self._partition_by)
        )

    def drop_column(self, name: str) -> Self:
        """Leave a mapped column out; no file is touched."""
        self._fields = tuple(each for each in self._fields if each.name != name)
        return self.describe(schemaString=schema_string(self._fields))

    def add_columns(self, *fields: Field) -> Self:
        """Add columns that the files so far have no values for."""
        if MAX_ID in self.metadata["configuration"]:
            return self.describe(**self._mapped(fields, self.metadata, self._fields))
        self._fields = (*self._fields, *fields)
        return self.describe(schemaString=schema_string(self._fields))

    def read(self, path: str) -> bytes:
        """Return the content of a file by its path in the log."""
        return (self.directory / unquote(path)).read_bytes()

    def rows_of(self, path: str) -> pl.DataFrame:
        """Return the rows of a live file that are not deleted, under the names of the schema."""
        return self._numbered_rows(path).drop("row")

    def place(self, file: DataFile, values: Values) -> Action:
        """Write a data file and return the action that adds it."""
        key = str(PurePosixPath(directory_of(values)) / self._next_name())
        self._write_data(key, file.content)
        add: dict[str, Any] = {
            "path": log_path(key),
            "partitionValues": dict(values),
            "size": len(file.content),
            "modificationTime": self.next_ms,
            "dataChange": True,
        }
        return {"add": add | ({"stats": file.stats} if file.stats is not None else {})}

    def place_changes(self, rows: pl.DataFrame, values: Values) -> Action:
        """Write a file of rows with their change types, and return the action that tells of it."""
        types = rows[CHANGE_TYPE]
        content = to_data_file(to_physical(rows.drop(CHANGE_TYPE), self._fields).with_columns(types)).content
        name = f"cdc-{self._unique('cdc')}.c000.snappy.parquet"
        key = str(PurePosixPath(_CHANGES) / directory_of(values) / name)
        self._write_data(key, content)
        return {
            "cdc": {
                "path": log_path(key),
                "partitionValues": dict(values),
                "size": len(content),
                "dataChange": False,
            }
        }

    def remove(self, *paths: str) -> list[Action]:
        """Return the actions that remove live files."""
        live = self.live
        return [{"remove": self._removal(path, live[path])} for path in paths]

    def _removal(self, path: str, add: Action) -> Action:
        removal = {"path": path, "deletionTimestamp": self.next_ms, "dataChange": True}
        if self.protocol["minWriterVersion"] < _TELLING_WRITER:
            return removal
        known = ("partitionValues", "size", "deletionVector")
        return removal | {"extendedFileMetadata": True} | {key: add[key] for key in known if key in add}

    def _rewrite(self, path: str, rows: pl.DataFrame, changes: pl.DataFrame) -> Iterator[Action]:
        values = self.live[path]["partitionValues"]
        yield from self.remove(path)
        if rows.height:
            yield self.place(to_data_file(to_physical(rows, self._fields)), values)
        if self.has(_CHANGE_FEED):
            yield self.place_changes(changes, values)

    def _numbered_rows(self, path: str) -> pl.DataFrame:
        """Return the rows of a file that are not deleted, with their numbers in the column ``row``."""
        file = pl.read_parquet(io.BytesIO(self.read(path)))
        columns = [
            pl.col(physical_name(field)).alias(field.name)
            if physical_name(field) in file.columns
            else pl.lit(None, dtype=polars_type(field.type)).alias(field.name)
            for field in self._fields
            if field.name not in self._partition_by
        ]
        deleted = sorted(self._deleted.get(path, ()))
        return file.select(pl.int_range(pl.len()).alias("row"), *columns).remove(pl.col("row").is_in(deleted))

    def _write_vectors(
        self, vectors: Sequence[Collection[int]], storage: VectorStorage, prefix: str
    ) -> list[dict[str, Any]]:
        if storage == "i":
            return [inline_vector(rows) for rows in vectors]
        name = self._unique("vector")
        content, descriptors = vector_file(vectors, name, prefix)
        target = self._write_data(vector_path(name, prefix), content)
        if storage == "p":
            absolute = {"storageType": "p", "pathOrInlineDv": target.absolute().as_uri()}
            return [{**descriptor, **absolute} for descriptor in descriptors]
        return descriptors

    def _with_vector(self, path: str, vector: Mapping[str, Any]) -> Action:
        add = self.live[path]
        # The bounds are those of rows that may be gone.
        stats = json.dumps({**json.loads(add["stats"]), "tightBounds": False}, separators=(",", ":"))
        return {"add": {**add, "deletionVector": vector, "stats": stats}}

    def _write(self, rows: Rows, *, stats: bool, files: int) -> list[Action]:
        frame = pl.DataFrame(rows, schema=polars_schema(self._fields))
        if not self._partition_by:
            return [self._place_rows(part, {}, stats=stats) for part in _split(frame, files)]
        groups = frame.partition_by(self._partition_by, maintain_order=True, include_key=True)
        return [action for group in groups for action in self._write_group(group, stats=stats, files=files)]

    def _write_group(self, group: pl.DataFrame, *, stats: bool, files: int) -> Iterable[Action]:
        columns = [field for field in self._fields if field.name in self._partition_by]
        values = {physical_name(field): partition_text(group[field.name][0]) for field in columns}
        data = group.drop(self._partition_by)
        return [self._place_rows(part, values, stats=stats) for part in _split(data, files)]

    def _place_rows(self, rows: pl.DataFrame, values: Values, *, stats: bool) -> Action:
        return self.place(to_data_file(to_physical(rows, self._fields), stats=stats), values)

    def _write_data(self, key: str, content: bytes) -> Path:
        target = self.directory / key
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        return target

    def _next_name(self) -> str:
        number = self._named[""]
        return f"part-{number:05d}-{self._unique('')}.c000.snappy.parquet"

    def _mapped(
        self, fields: Sequence[Field], metadata: Action, known: Sequence[Field] = ()
    ) -> dict[str, Any]:
        """Map columns that come after the known ones; return what changes in the metadata."""
        configuration = metadata["configuration"]
        mapped, last = map_columns(fields, metadata["id"], int(configuration.get(MAX_ID, 0)))
        self._fields = (*known, *mapped)
        return {
            "schemaString": schema_string(self._fields),
            "configuration": {**configuration, MAX_ID: str(last)},
        }

    def _first_metadata(self, name: str) -> dict[str, Any]:
        return {
            "id": table_id(name),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema_string(self._fields),
            "partitionColumns": list(self._partition_by),
            "configuration": {},
            "createdTime": to_ms(STARTED_AT),
        }


def _changed(rows: pl.DataFrame, change: str) -> pl.DataFrame:
    return rows.with_columns(pl.lit(change).alias(CHANGE_TYPE))


def _split(frame: pl.DataFrame, files: int) -> Iterable[pl.DataFrame]:
    size = max(-(-frame.height // files), 1)
    return frame.iter_slices(size) if frame.height else [frame]
