"""The columns of tables that views read, from their logs: as little of them as tells."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import polars as pl

from gateway.domain.location import Location
from gateway.domain.name import TableName
from gateway.errors import GatewayError
from gateway.ports import LogFile, LogReader, Storages

Key = tuple[str, str, str]

_COMMIT: Final = re.compile(r"[0-9]{20}\.json")
_CHECKPOINT: Final = re.compile(
    r"[0-9]{20}\.checkpoint(?:\.[0-9a-f-]{36}|\.[0-9]{10}\.[0-9]{10})?\.(?:parquet|json)"
)
_LAST: Final = "_last_checkpoint"
_AT_ONCE: Final = 8
_PATIENCE: Final = timedelta(seconds=10)
# What is looked at of one table; what needs more is left to the first refresh.
_MOST_COMMITS: Final = 100
_LARGEST: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What could be read, and in words what could not."""

    columns: Mapping[Key, tuple[str, ...]] = field(default_factory=dict)
    unread: Mapping[Key, str] = field(default_factory=dict)


class _Unreadable(Exception):
    """Why the columns of a table are not known."""


async def read_columns(
    tables: Sequence[tuple[TableName, Location]], storages: Storages, patience: timedelta = _PATIENCE
) -> Found:
    """Return the columns of tables, several at once, and for no longer than somebody would wait."""
    columns: dict[Key, tuple[str, ...]] = {}
    unread: dict[Key, str] = {}
    gate = asyncio.Semaphore(_AT_ONCE)

    async def read(name: TableName, location: Location) -> None:
        try:
            async with gate:
                columns[name.key] = await _read(location, storages)
        except _Unreadable as exc:
            unread[name.key] = str(exc)
        except GatewayError as exc:
            unread[name.key] = exc.message

    tasks = [asyncio.create_task(read(name, location)) for name, location in tables]
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=patience.total_seconds())
        for task in late:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        for (name, _), result in zip(tables, ended, strict=True):
            if result is not None:
                unread[name.key] = "its log took too long to read, or could not be"
    return Found(columns=columns, unread=unread)


async def _read(location: Location, storages: Storages) -> tuple[str, ...]:
    storage = storages.find(location)
    if storage is None or storage.reader is None:
        raise _Unreadable("no storage of this process can read it")
    schema = await _find_schema(storage.reader, location)
    try:
        return tuple(str(column["name"]) for column in json.loads(schema)["fields"])
    except (ValueError, KeyError, TypeError) as exc:
        raise _Unreadable("its schema cannot be read") from exc


async def _find_schema(reader: LogReader, location: Location) -> str:
    """Return the latest schema: of the newest commit that has one, or of the checkpoint before."""
    files = await reader.list_log(location, start=await _start(reader, location))
    checkpoints = [file for file in files if _CHECKPOINT.fullmatch(file.name)]
    newest = max((file.name[:20] for file in checkpoints), default="")
    commits = [file for file in files if _COMMIT.fullmatch(file.name) and file.name[:20] > newest]
    if not commits and not checkpoints:
        raise _Unreadable("there is no table at its location")
    for commit in list(reversed(commits))[:_MOST_COMMITS]:
        content = await _content(reader, location, commit)
        if schema := await asyncio.to_thread(_schema_in, content):
            return schema
    for checkpoint in checkpoints:
        if not checkpoint.name.startswith(newest):
            continue
        content = await _content(reader, location, checkpoint)
        if schema := await asyncio.to_thread(_schema_of, checkpoint.name, content):
            return schema
    raise _Unreadable("the part of its log that was looked at has no schema")


async def _start(reader: LogReader, location: Location) -> str:
    try:
        return f"{int(json.loads(await reader.read_log(location, _LAST))['version']):020d}"
    except (GatewayError, ValueError, KeyError, TypeError):
        # Without a checkpoint, or without a word of it.
        return f"{0:020d}"


async def _content(reader: LogReader, location: Location, file: LogFile) -> bytes:
    if file.size > _LARGEST:
        raise _Unreadable("its log is too large to be looked at here")
    return await reader.read_log(location, file.name)


def _schema_of(name: str, content: bytes) -> str:
    if name.endswith(".json"):
        return _schema_in(content)
    try:
        frame = pl.read_parquet(io.BytesIO(content), columns=["metaData"])
        found = frame["metaData"].struct.field("schemaString").drop_nulls()
    except (pl.exceptions.PolarsError, OSError) as exc:
        raise _Unreadable("its checkpoint cannot be read") from exc
    return str(found[0]) if len(found) else ""


def _schema_in(content: bytes) -> str:
    """Return the last schema in a commit."""
    schema = ""
    for line in content.splitlines():
        if b'"metaData"' not in line:
            continue
        try:
            action: Mapping[str, Any] = json.loads(line)
            schema = str(action.get("metaData", {}).get("schemaString", schema))
        except (ValueError, AttributeError):
            continue
    return schema
