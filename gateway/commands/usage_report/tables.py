"""Reads the tables of usage without Spark: their logs as the gateway replays any, their files by polars."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final
from urllib.parse import unquote

import polars as pl

from gateway.domain.location import Location
from gateway.errors import InvalidArgument, NotFound, Unavailable, Unsupported
from gateway.ports import LogFile, StateStore
from gateway.services.snapshot.log.listing import list_recent
from gateway.services.snapshot.log.loading import load_version
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.replay import load

_AT_ONCE: Final = 8
_PAGE: Final = 1000
_TIME: Final = pl.Datetime("us", "UTC")

Columns = Mapping[str, pl.DataType]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file of a table, as its log tells of it."""

    path: str
    day: date | None
    # What the log says of its columns' least and greatest values; empty where it says nothing.
    least: Mapping[str, Any]
    greatest: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReader:
    """The tables below a location, through what is kept there."""

    store: StateStore
    location: Location

    async def read(
        self, name: str, columns: Columns, wanted: Callable[[DataFile], bool] = lambda _: True
    ) -> pl.DataFrame:
        """Return some columns of a table's files; an older table lacks some, and then they are null."""
        files = [file for file in await self._files(name) if wanted(file)]
        turns = asyncio.Semaphore(_AT_ONCE)

        async def read_one(file: DataFile) -> pl.DataFrame:
            async with turns:
                return await self._read_file(name, file, columns)

        frames = await asyncio.gather(*(read_one(file) for file in files))
        return pl.concat([pl.DataFrame(schema=dict(columns)), *frames])

    async def _files(self, name: str) -> Sequence[DataFile]:
        log = TableLog(location=self.location.child(name), reader=_Log(self.store, name))
        try:
            listing = await list_recent(log)
            snapshot = load(await load_version(log, listing, listing.latest))
        except InvalidArgument as exc:
            raise NotFound(
                f"there is no table {name} at {self.location}: `sluice pipeline usage` makes it"
            ) from exc
        rows = snapshot.files.rows(0, snapshot.files.height)
        vectors = rows["deletionVector"].struct.field("storageType").is_not_null().any()
        if vectors:
            raise Unsupported(
                f"{name} has deletion vectors, which reports do not read: run REORG TABLE … APPLY"
            )
        return [_data_file(row) for row in rows.select("path", "partitionValues", "stats").to_dicts()]

    async def _read_file(self, name: str, file: DataFile, columns: Columns) -> pl.DataFrame:
        entry = await self.store.get(f"{name}/{file.path}")
        if entry is None:
            raise Unavailable(f"a file of {name} went away while it was read: try again")
        return await asyncio.to_thread(_decode, entry.content, file, columns)


class _Log:
    """The log of one table, as the replay wants it read."""

    def __init__(self, store: StateStore, name: str) -> None:
        self._store = store
        self._prefix = f"{name}/_delta_log/"

    async def list_log(self, table: Location, *, start: str) -> Sequence[LogFile]:
        found: list[LogFile] = []
        after = ""
        while page := await self._store.list(self._prefix, after=after, limit=_PAGE):
            names = [(one.key.removeprefix(self._prefix), one) for one in page]
            found += [
                LogFile(name, one.size, one.modified_at)
                for name, one in names
                if "/" not in name and name >= start
            ]
            after = page[-1].key
        return sorted(found, key=lambda file: file.name)

    async def read_log(self, table: Location, name: str) -> bytes:
        entry = await self._store.get(self._prefix + name)
        if entry is None:
            raise NotFound(f"the table's log has no file {name}")
        return entry.content


def _data_file(row: Mapping[str, Any]) -> DataFile:
    stats = json.loads(row["stats"]) if row["stats"] else {}
    day = dict(_pairs(row["partitionValues"])).get("day")
    return DataFile(
        path=unquote(row["path"]),
        day=date.fromisoformat(day) if day else None,
        least=stats.get("minValues", {}),
        greatest=stats.get("maxValues", {}),
    )


def _pairs(values: Any) -> Sequence[tuple[str, str | None]]:
    if isinstance(values, Mapping):
        return list(values.items())
    return [(pair["key"], pair["value"]) for pair in values or ()]


def _decode(content: bytes, file: DataFile, columns: Columns) -> pl.DataFrame:
    there = pl.read_parquet_schema(io.BytesIO(content))
    frame = pl.read_parquet(io.BytesIO(content), columns=[name for name in columns if name in there])
    given = {"day": pl.lit(file.day, dtype=pl.Date)} if "day" not in there else {}
    return frame.with_columns(**given).select(
        (pl.col(name) if name in there or name in given else pl.lit(None)).cast(kind).alias(name)
        for name, kind in columns.items()
    )


def texts(*names: str) -> Columns:
    return dict.fromkeys(names, pl.String())


def counts(*names: str) -> Columns:
    return dict.fromkeys(names, pl.Int64())


def times(*names: str) -> Columns:
    return dict.fromkeys(names, _TIME)
