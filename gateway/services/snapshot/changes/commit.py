"""What single commits say, each by itself: files added, removed and changed, protocol and metadata."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import polars as pl
from polars.exceptions import PanicException, PolarsError

from gateway.errors import Unsupported
from gateway.services.snapshot.log.actions import require_bounded, rows_of
from gateway.services.snapshot.log.bounds import may_exceed
from gateway.services.snapshot.log.description import metadata_of, protocol_of
from gateway.services.snapshot.log.fault import damaged
from gateway.services.snapshot.log.lines import LineDecoder, split_lines
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.path import encode_paths
from gateway.services.snapshot.log.protocol import Protocol
from gateway.services.snapshot.log.schema import ADD, CDC, ENCODED, METADATA, PROTOCOL, REMOVE, TEXTS

_FIELDS: Final[Mapping[str, Mapping[str, pl.DataType]]] = {
    "add": ADD,
    "remove": REMOVE,
    "cdc": CDC,
    "protocol": PROTOCOL,
    "metaData": METADATA,
}
_LINES: Final = LineDecoder({action: pl.Struct(fields) for action, fields in _FIELDS.items()})
# The largest integer that all readers of JSON agree on.
_MAX_SIZE: Final = 2**53 - 1
_INFO: Final = re.compile(rb'^[^\n]*"commitInfo"[^\n]*$', re.MULTILINE)
_ROWS_CHANGED: Final = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFile:
    """A commit as it was read."""

    version: int
    # Milliseconds since the epoch.
    timestamp: int
    name: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The actions of a version, those of one kind in the order in which the commit has them."""

    version: int
    timestamp: int
    # The columns of ``schema.ADD``, ``schema.REMOVE`` and ``schema.CDC``, each with ``encoded``.
    add: pl.DataFrame = field(repr=False)
    remove: pl.DataFrame = field(repr=False)
    cdc: pl.DataFrame = field(repr=False)
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    # By its own account the commit rewrote files and changed no row.
    changed_nothing: bool = False


def parse_commits(files: Sequence[CommitFile]) -> list[Commit]:
    """Return commits in the order given; raise ``Unsupported`` that names the one that is damaged."""
    try:
        return _parse(files)
    except Unsupported:
        # Whichever it is, by itself it is found out under its own name.
        for file in files if len(files) > 1 else ():
            parse_commits([file])
        raise


def _parse(files: Sequence[CommitFile]) -> list[Commit]:
    # Many at once, as one at a time costs milliseconds each.
    split = [split_lines(file.content) for file in files]
    # A panic is how the library meets bytes that it did not expect, and no ``Exception``.
    try:
        actions = _read(files[0].name, split)
        return [_commit(file, {action: next(rows) for action, rows in actions.items()}) for file in files]
    except (PolarsError, PanicException) as exc:
        raise damaged(files[0].name, "cannot be parsed") from exc


def _read(name: str, split: Sequence[Sequence[bytes]]) -> dict[str, Iterator[pl.DataFrame]]:
    """Return the actions of each kind, commit by commit."""
    lines = [line for commit in split for line in commit]
    frame = _LINES.decode(lines)
    commits = pl.Series([n for n, commit in enumerate(split) for _ in commit], dtype=pl.Int64)
    long = may_exceed(lines)
    read = {}
    for action, fields in _FIELDS.items():
        rows = rows_of(frame, action, fields)
        if "path" in fields:
            rows = _files(name, action, rows, long=long)
        read[action] = _split(rows, commits.filter(frame[action].is_not_null()), len(split))
    return read


def _files(name: str, action: str, rows: pl.DataFrame, *, long: bool) -> pl.DataFrame:
    # Of all commits at once: whose damage it is, is found out when they are parsed by themselves.
    if long:
        require_bounded(name, rows)
    checked = _removed(name, rows) if action == "remove" else _added(name, rows)
    # A writer that does not say has changed data, for all we know; change data is beside the data.
    changes = pl.col("dataChange").fill_null(value=action != "cdc")
    return checked.with_columns(changes, encode_paths(rows["path"]).alias(ENCODED))


def _split(rows: pl.DataFrame, commits: pl.Series, count: int) -> Iterator[pl.DataFrame]:
    """Return the rows of each commit, given the number of the commit that each is from."""
    numbers = pl.Series(range(count + 1), dtype=pl.Int64)
    bounds = commits.search_sorted(numbers, side="left").to_list()
    return (rows.slice(start, end - start) for start, end in pairwise(bounds))


def _commit(file: CommitFile, rows: Mapping[str, pl.DataFrame]) -> Commit:
    return Commit(
        version=file.version,
        timestamp=file.timestamp,
        add=rows["add"],
        remove=rows["remove"],
        cdc=rows["cdc"],
        protocol=protocol_of(rows["protocol"], file.name),
        metadata=metadata_of(file.name, rows["metaData"]),
        changed_nothing=_changed_nothing(file.content),
    )


def _added(name: str, rows: pl.DataFrame) -> pl.DataFrame:
    if rows["path"].has_nulls() or not rows["size"].is_between(0, _MAX_SIZE).fill_null(value=False).all():
        raise damaged(name, "adds a file without a path or a size")
    return rows.with_columns(pl.col("partitionValues").fill_null(pl.lit({}, dtype=TEXTS)))


def _removed(name: str, rows: pl.DataFrame) -> pl.DataFrame:
    if rows["path"].has_nulls():
        raise damaged(name, "removes a file without a path")
    # What is no size is as good as none: like the partition values, it is optional here.
    known = pl.col("size").is_between(0, _MAX_SIZE)
    return rows.with_columns(pl.when(known).then(pl.col("size")))


def _changed_nothing(content: bytes) -> bool:
    """Tell whether a merge counted no row that it inserted, updated or deleted.

    It may rewrite files all the same and claim that their data changed.
    """
    if b'"MERGE"' not in content:
        return False
    return any(_is_idle_merge(match.group()) for match in _INFO.finditer(content))


def _is_idle_merge(line: bytes) -> bool:
    try:
        info: Any = json.loads(line)["commitInfo"]
        metrics = info["operationMetrics"]
        return info["operation"] == "MERGE" and all(str(metrics[name]) == "0" for name in _ROWS_CHANGED)
    except (ValueError, LookupError, TypeError, RecursionError):
        # Informational only: what cannot be told from it is not known.
        return False
