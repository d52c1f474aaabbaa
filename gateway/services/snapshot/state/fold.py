"""Files put in order now and then: few chunks, and no more rows that are gone than live ones."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Final, TypeVar

import polars as pl

from gateway.services.snapshot.state.columns import Columns
from gateway.services.snapshot.state.files import Files, Stock, memory_of
from gateway.services.snapshot.state.segments import Segments

# Copying what is live is worth it when the most of what takes memory is gone.
MIN_GONE: Final = 1000
# A chunk is joined to the one before it that is less than so many times as long, so that there are few
# of them, and each row is copied a few times at most.
_RATIO: Final = 8
_MAX_CHUNKS: Final = 32
# How many rows are copied at a time: twice the memory is taken by these only.
_BATCH: Final = 50_000

T = TypeVar("T", pl.DataFrame, pl.Series)


def fold(files: Files) -> Files:
    """Return the same live files in the same order, in rows that are cheaper to keep and to read."""
    gone = files.height - files.num_files + files.dropped
    if gone > files.num_files + MIN_GONE:
        return _compacted(files)
    at = _seam(files.frame["path"].chunk_lengths())
    if at is None:
        return files
    joined = replace(
        files,
        frame=_joined(files.frame, at),
        parsed=None if files.parsed is None else _joined(files.parsed, at),
    )
    # Texts are still shared with the versions before; which rows they are in is not, when all were copied.
    return joined if at else _restocked(joined)


def align(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the same rows, all columns in the same few chunks: any others are made so for every reader."""
    lengths = frame.to_series().chunk_lengths()
    if len(lengths) > _MAX_CHUNKS:
        return frame.rechunk()
    starts = accumulate(lengths, initial=0)
    # A column that is one chunk there already is not copied.
    parts = [frame.slice(at, length).rechunk() for at, length in zip(starts, lengths, strict=False)]
    return pl.concat(parts, rechunk=False) if parts else frame


def _compacted(files: Files) -> Files:
    """Return the live files alone, in memory of their own."""
    frame, parsed = files.frame, files.parsed
    if files.live is not None:
        frame = frame.filter(files.live)
        parsed = None if parsed is None else parsed.filter(files.live)
    copied = replace(
        files,
        frame=_copied(frame),
        parsed=None if parsed is None else _copied(parsed.to_frame()).to_series(),
        live=None,
        dropped=0,
        columns=Columns(),
        segments=Segments(),
    )
    return _restocked(copied)


def _restocked(files: Files) -> Files:
    return replace(files, stock=Stock(memory_of(files.frame, files.parsed, files.dropped)), grown=0)


def _copied(frame: pl.DataFrame) -> pl.DataFrame:
    if frame.is_empty():
        return frame.clear()
    parts = [_written(frame.slice(at, _BATCH)) for at in range(0, frame.height, _BATCH)]
    return align(pl.concat(parts, rechunk=False))


def _written(frame: pl.DataFrame) -> pl.DataFrame:
    # Any other way leaves strings where they are, in buffers with those of rows that are gone.
    stream = io.BytesIO()
    frame.write_ipc_stream(stream)
    stream.seek(0)
    return pl.read_ipc_stream(stream)


def _seam(lengths: Sequence[int]) -> int | None:
    """Return the row from which on chunks are to be one; None when they are well as they are."""
    tail, first = lengths[-1] if lengths else 0, len(lengths) - 1
    while first > 0 and lengths[first - 1] < _RATIO * tail:
        first -= 1
        tail += lengths[first]
    return sum(lengths[:first]) if first < len(lengths) - 1 else None


def _joined(rows: T, at: int) -> T:
    if not at:
        return rows.rechunk()
    return pl.concat([rows.head(at), rows.slice(at).rechunk()], rechunk=False)
