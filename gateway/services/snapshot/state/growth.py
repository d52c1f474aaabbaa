"""Files grown by commits: rows appended for what was added, others marked for what is gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from gateway.services.snapshot.log.actions import NO_FILES, NOT_REMOVED, Actions
from gateway.services.snapshot.log.reconcile import COMMIT, are_among, find_live, keys_of
from gateway.services.snapshot.state.files import Files, Stock, memory_of
from gateway.services.snapshot.state.fold import align, fold
from gateway.services.snapshot.state.segments import SEGMENT_ROWS


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What commits come to."""

    # The files that are live after the commits.
    added: pl.DataFrame
    removed: pl.DataFrame
    dropped: int


def change_of(commits: Sequence[Actions]) -> Change:
    """Return what commits come to, one after the other."""
    dropped = sum(commit.dropped for commit in commits)
    if not commits:
        return Change(added=NO_FILES, removed=NOT_REMOVED, dropped=dropped)
    if len(commits) == 1:
        return Change(added=commits[0].files, removed=commits[0].removed, dropped=dropped)
    added = _numbered([commit.files for commit in commits])
    removed = _numbered([commit.removed for commit in commits])
    live = find_live(added, removed)
    return Change(added=live, removed=removed.drop(COMMIT), dropped=dropped + added.height - live.height)


def start(checkpoint: Sequence[Actions]) -> Files:
    """Return the files that the parts of a checkpoint list; none without a part."""
    frame = align(pl.concat([part.files for part in checkpoint], rechunk=False)) if checkpoint else NO_FILES
    parsed = _parsed(checkpoint)
    dropped = sum(part.dropped for part in checkpoint)
    return Files(
        frame=frame,
        parsed=parsed,
        num_files=frame.height,
        size=_sum(frame["size"]),
        dropped=dropped,
        stock=Stock(memory_of(frame, parsed, dropped)),
    )


def grow(files: Files, commits: Sequence[Actions]) -> Files:
    """Return what files become by commits, without a look at more of them than their paths."""
    change = change_of(commits)
    if change.added.is_empty() and change.removed.is_empty():
        return files
    gone = _gone(files, change)
    added = change.added.rechunk()
    size = files.size - _sum(files.frame["size"][gone]) + _sum(added["size"])
    return fold(
        Files(
            frame=files.frame.vstack(added),
            live=_marked(files, gone, added.height),
            parsed=_extended(files.parsed, added.height),
            num_files=files.num_files - gone.len() + added.height,
            size=size,
            dropped=files.dropped + change.dropped,
            stock=files.stock,
            grown=files.grown + memory_of(added, None, change.dropped),
            columns=files.columns.grown(),
            segments=files.segments.grown(files.height, (gone // SEGMENT_ROWS).unique()),
        )
    )


def _numbered(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(
        frame.with_columns(pl.lit(number, dtype=pl.Int64).alias(COMMIT))
        for number, frame in enumerate(frames)
    )


def _gone(files: Files, change: Change) -> pl.Series:
    """Return the numbers of the live rows that commits remove or add anew."""
    touched = keys_of(change.added).vstack(change.removed)
    # Few rows have a path of these, and only those are compared in full: the rest is neither read nor copied.
    near = files.frame["path"].is_in(touched["path"].implode()).arg_true()
    if files.live is not None:
        near = near.filter(files.live[near])
    return near.filter(are_among(keys_of(files.frame, near), touched))


def _marked(files: Files, gone: pl.Series, added: int) -> pl.Series | None:
    if files.live is None and gone.is_empty():
        return None
    live = _all(files.height) if files.live is None else files.live.clone()
    # In place, on a copy: those who read the version before see their own.
    live.scatter(gone, values=False)
    return pl.concat([live, _all(added)], rechunk=True)


def _all(count: int) -> pl.Series:
    return pl.Series([True]).new_from_index(0, count)


def _parsed(checkpoint: Sequence[Actions]) -> pl.Series | None:
    types = [part.parsed.dtype for part in checkpoint if part.parsed is not None]
    if not types:
        return None
    # Parts that another writer's schema is in are as good as without: their raw statistics are there.
    return pl.concat(
        [
            part.parsed
            if part.parsed is not None and part.parsed.dtype == types[0]
            else _nulls(part.files.height, types[0])
            for part in checkpoint
        ],
        rechunk=False,
    )


def _extended(parsed: pl.Series | None, added: int) -> pl.Series | None:
    if parsed is None or not added:
        return parsed
    return pl.concat([parsed, _nulls(added, parsed.dtype)], rechunk=False)


def _nulls(count: int, dtype: pl.DataType) -> pl.Series:
    return pl.repeat(None, count, dtype=dtype, eager=True)


def _sum(sizes: pl.Series) -> int:
    # Wider than any sum of sizes.
    return int(sizes.cast(pl.Int128).sum())
