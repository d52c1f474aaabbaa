"""Pages of an answer: lines of JSON with holes where URLs and expirations go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import polars as pl

from gateway.domain.grant import Grant
from gateway.services.snapshot.answer.batch import MAX_FILES, render_batch
from gateway.services.snapshot.answer.fitting import BATCH, fitting
from gateway.services.snapshot.answer.limit import limited
from gateway.services.snapshot.answer.line import ActionKind, LineFormat
from gateway.services.snapshot.answer.rendered import RenderedPages
from gateway.services.snapshot.answer.segment import SegmentRenderer, split_segments
from gateway.services.snapshot.state.files import Files
from gateway.v1.snapshot_pb2 import HOLE_URL, FilePage, PathGroup

# How many rows of a version are looked through at a time for those that are wanted.
_SLICE: Final = 32 * MAX_FILES


def render_files(
    files: Files,
    line: LineFormat,
    grant: Grant,
    *,
    kept: pl.Series | None = None,
    limit: int | None = None,
    rendered: RenderedPages,
) -> Iterator[FilePage]:
    """Render page after page as they are asked for, up to the file whose records reach the limit.

    Segments of which all is wanted come first, as they are kept; then what is wanted of the others.
    """
    if limit is not None:
        yield from _render_up_to(limit, files, line, grant, kept)
        return
    whole, rest = split_segments(files, kept)
    renderer = SegmentRenderer(files, line, grant, rendered)
    yield from renderer.render(whole)
    if rest is not None:
        for rows in _batches(files, rest):
            yield from render_batch(rows, ActionKind.FILE, line, grant).pages()


def render_actions(
    rows: pl.DataFrame, kind: ActionKind, line: LineFormat, grant: Grant
) -> Iterator[FilePage]:
    """Render rows, whose columns are those of their action in the log, as pages."""
    while not rows.is_empty():
        count = fitting(rows, pages=BATCH)
        yield from render_batch(rows.head(count), kind, line, grant).pages()
        rows = rows.slice(count)


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


def _render_up_to(
    limit: int, files: Files, line: LineFormat, grant: Grant, kept: pl.Series | None
) -> Iterator[FilePage]:
    for rows in _batches(files, kept):
        if limit <= 0:
            return
        needed, limit = limited(rows, limit)
        yield from render_batch(needed, ActionKind.FILE, line, grant).pages()


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
            rows, pages = rows.slice(count), BATCH
    while not rows.is_empty():
        count = fitting(rows, pages=pages)
        yield rows.head(count)
        rows, pages = rows.slice(count), BATCH
