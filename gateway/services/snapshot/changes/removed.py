"""What the log does not say where it removes a file, and says where it added it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import polars as pl

from gateway.errors import InvalidArgument, Unavailable, Unsupported
from gateway.services.snapshot.changes.commit import Commit
from gateway.services.snapshot.changes.question import ChangeSource
from gateway.services.snapshot.changes.reading import ChangeRange, CommitReader
from gateway.services.snapshot.index.fault import IndexFault
from gateway.services.snapshot.index.shelf import IndexShelf
from gateway.services.snapshot.log.actions import NO_FILES
from gateway.services.snapshot.state.indexed import Indexed


async def find_details(
    source: ChangeSource, reader: CommitReader, versions: ChangeRange, paths: pl.Series
) -> pl.DataFrame:
    """Return path, size and partition values of files; raise ``Unsupported`` when one was never added."""
    wanted = paths.unique()
    before = await _details_before(source, versions.first, wanted)
    within = [
        await asyncio.to_thread(_details_within, batch.commits, wanted)
        async for batch in reader.read(versions)
    ]
    details = pl.concat([before, *within]).unique("path", keep="last")
    if details.height < wanted.len():
        raise Unsupported(
            "the table's log does not say how large a file is that it removes within versions "
            f"{versions.first} to {versions.last}, nor does it still hold where the file was added"
        )
    return details


def completed(rows: pl.DataFrame, details: pl.DataFrame | None) -> pl.DataFrame:
    """Return the rows with what they lack and the details have."""
    if details is None:
        return rows
    known = [pl.coalesce(name, f"{name}_right").alias(name) for name in ("size", "partitionValues")]
    joined = rows.join(details, on="path", how="left", maintain_order="left")
    return joined.with_columns(known).select(rows.columns)


async def _details_before(source: ChangeSource, first: int, wanted: pl.Series) -> pl.DataFrame:
    if first == 0:
        return _details(NO_FILES, wanted)
    try:
        before = await source.store.at(source.log, source.listing, first - 1)
    except (InvalidArgument, Unsupported):
        # Cleaned up: the range itself may hold all that it takes.
        return _details(NO_FILES, wanted)
    held = await asyncio.to_thread(_details, before.files.frame, wanted)
    if before.indexed is None or source.store.shelf is None:
        return held
    return pl.concat([await _details_indexed(source, before.indexed, source.store.shelf, wanted), held])


async def _details_indexed(
    source: ChangeSource, indexed: Indexed, shelf: IndexShelf, wanted: pl.Series
) -> pl.DataFrame:
    numbers = await asyncio.to_thread(indexed.index.zones.find_all, wanted)
    found = [_details(NO_FILES, wanted)]
    try:
        for number in numbers:
            block = await shelf.load(indexed.index, number)
            found.append(await asyncio.to_thread(_details, block.frame, wanted))
    except IndexFault as exc:
        source.store.forsake(source.log, indexed, exc)
        raise Unavailable("what is known of the table's files was lost meanwhile; try again") from exc
    return pl.concat(found)


def _details_within(commits: Sequence[Commit], wanted: pl.Series) -> pl.DataFrame:
    return pl.concat([_details(commit.add, wanted) for commit in commits])


def _details(added: pl.DataFrame, wanted: pl.Series) -> pl.DataFrame:
    return added.filter(pl.col("path").is_in(wanted.implode())).select("path", "size", "partitionValues")
