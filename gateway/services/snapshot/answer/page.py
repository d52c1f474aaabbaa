"""Pages of an answer: lines of JSON with holes where URLs and expirations go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import polars as pl

from gateway.domain.grant import Grant
from gateway.services.snapshot.answer.batch import MAX_BYTES, MAX_FILES, render_batch
from gateway.services.snapshot.answer.limit import limited
from gateway.services.snapshot.answer.line import MAX_STATS_BYTES, ActionKind, LineFormat
from gateway.services.snapshot.log.schema import ENCODED
from gateway.services.snapshot.state.files import Files
from gateway.v1.snapshot_pb2 import HOLE_URL, FilePage, PathGroup

__all__ = [
    "MAX_BYTES",
    "MAX_FILES",
    "MAX_STATS_BYTES",
    "ActionKind",
    "LineFormat",
    "fitting",
    "join_pages",
    "render_actions",
    "render_files",
]

# How many pages are rendered at once: a step over a column costs as much for a row as for hundreds.
_BATCH: Final = 8
# How many rows of a version are looked through at a time for those that are wanted.
_SLICE: Final = 32 * MAX_FILES
# What a line has besides its path and the texts of the log, roughly; and one with a deletion vector.
_LINE_BYTES: Final = 384
_VECTOR_BYTES: Final = 256


def render_files(
    files: Files, line: LineFormat, grant: Grant, *, kept: pl.Series | None = None, limit: int | None = None
) -> Iterator[FilePage]:
    """Render page after page as they are asked for, up to the file whose records reach the limit."""
    for rows in _batches(files, kept):
        needed = rows
        if limit is not None:
            if limit <= 0:
                return
            needed, limit = limited(rows, limit)
        yield from render_batch(needed, ActionKind.FILE, line, grant).pages()


def render_actions(
    rows: pl.DataFrame, kind: ActionKind, line: LineFormat, grant: Grant
) -> Iterator[FilePage]:
    """Render rows, whose columns are those of their action in the log, as pages."""
    while not rows.is_empty():
        count = fitting(rows, pages=_BATCH)
        yield from render_batch(rows.head(count), kind, line, grant).pages()
        rows = rows.slice(count)


def fitting(rows: pl.DataFrame, *, pages: int = 1) -> int:
    """Return how many rows from the front make at most so many pages, and at least one row."""
    rows = rows.head(pages * MAX_FILES)
    total = rows.select(_weight(rows.columns).cum_sum()).to_series()
    return max(int((total <= pages * MAX_BYTES).sum()), 1)


def join_pages(pages: Sequence[FilePage]) -> FilePage:
    """Return one page with the lines of several, in their order."""
    joined, start = FilePage(lines=b"".join(page.lines for page in pages)), 0
    paths: dict[int, list[bytes]] = {}
    places: list[int] = []
    for page in pages:
        joined.holes.extend(start + hole for hole in page.holes)
        start += len(page.lines)
        joined.hole_kinds += page.hole_kinds
        joined.files += page.files
        joined.file_bytes += page.file_bytes
        for group in page.groups:
            paths.setdefault(group.location, []).append(group.paths)
        order = page.hole_groups or bytes(page.hole_kinds.count(HOLE_URL))
        places += [page.groups[number].location for number in order]
    joined.groups.extend(PathGroup(location=place, paths=b"\n".join(part)) for place, part in paths.items())
    if len(paths) > 1:
        numbers = {place: number for number, place in enumerate(paths)}
        joined.hole_groups = bytes(numbers[place] for place in places)
    return joined


def _batches(files: Files, kept: pl.Series | None) -> Iterator[pl.DataFrame]:
    """Return the wanted rows some pages at a time; where few are wanted, they are of many slices."""
    rows = files.frame.clear()
    # The first page is not kept waiting for others.
    pages = 1
    for offset in range(0, files.height, _SLICE):
        rows = pl.concat([rows, files.rows(offset, _SLICE, kept)])
        while rows.height >= pages * MAX_FILES:
            count = fitting(rows, pages=pages)
            yield rows.head(count)
            rows, pages = rows.slice(count), _BATCH
    while not rows.is_empty():
        count = fitting(rows, pages=pages)
        yield rows.head(count)
        rows, pages = rows.slice(count), _BATCH


def _weight(columns: Sequence[str]) -> pl.Expr:
    """Return how many bytes of lines and paths a row makes, roughly and rather too many."""
    path = pl.col(ENCODED).fill_null(pl.col("path")) if ENCODED in columns else pl.col("path")
    parts = [pl.lit(_LINE_BYTES), path.str.len_bytes(), _entries("partitionValues")]
    if "tags" in columns:
        parts.append(_entries("tags"))
    if "stats" in columns:
        length, characters = pl.col("stats").str.len_bytes(), pl.col("stats").str.len_chars()
        # At worst every character is escaped: a quote to two bytes, what is not ASCII to six for each unit.
        escaped = 2 * length + 6 * (length - characters)
        parts.append(pl.when(length <= MAX_STATS_BYTES).then(escaped).otherwise(0))
    if "deletionVector" in columns:
        text = pl.col("deletionVector").struct.field("pathOrInlineDv")
        parts.append(6 * text.str.len_bytes() + _VECTOR_BYTES)
    return pl.sum_horizontal(part.cast(pl.Int64) for part in parts)


def _entries(name: str) -> pl.Expr:
    entries = pl.col(name).map
    names = entries.keys().list.join("").str.len_bytes() + 6 * entries.len()
    values = entries.values().list.join("", ignore_nulls=True).str.len_bytes()
    return 6 * (names + values)
