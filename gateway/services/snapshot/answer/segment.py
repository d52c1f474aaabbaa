"""Pages of whole segments: the same until a commit touches one, so that they are rendered once and kept."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final

import polars as pl

from gateway.domain.grant import Grant
from gateway.services.snapshot.answer.batch import render_batch
from gateway.services.snapshot.answer.fitting import BATCH, fitting
from gateway.services.snapshot.answer.line import ActionKind, LineFormat
from gateway.services.snapshot.answer.rendered import Pages, RenderedPages
from gateway.services.snapshot.state.files import Files
from gateway.services.snapshot.state.segments import SEGMENT_ROWS
from gateway.v1.snapshot_pb2 import FilePage

# Lines are weighed before they are written, and then as if they were twice as long as most turn out.
_WEIGHED: Final = 2


def split_segments(files: Files, kept: pl.Series | None) -> tuple[Sequence[int], pl.Series | None]:
    """Return the segments of which all live rows are kept, and which rows are kept of the others, if any."""
    numbers = range(-(-files.height // SEGMENT_ROWS))
    if kept is None:
        return numbers, None
    wanted = kept if files.live is None else kept & files.live
    counts = [int(_part(wanted, number).sum()) for number in numbers]
    whole = [number for number in numbers if counts[number] and counts[number] == _live(files, number)]
    if not whole:
        return whole, kept
    rest = kept.clone()
    for number in whole:
        at = number * SEGMENT_ROWS
        rest.scatter(pl.int_range(at, min(at + SEGMENT_ROWS, files.height), eager=True), values=False)
    return whole, rest if sum(counts) > sum(counts[number] for number in whole) else None


class SegmentRenderer:
    """Renders segments of some files for some answers, some at once, and none that is kept."""

    def __init__(self, files: Files, line: LineFormat, grant: Grant, rendered: RenderedPages) -> None:
        self._files = files
        self._line = line
        self._grant = grant
        self._rendered = rendered
        # All that the pages depend on besides the rows.
        locations = (grant.location, *grant.auxiliary_locations)
        self._form: Final = (line, tuple(location.identity for location in locations))

    def render(self, numbers: Sequence[int]) -> Iterator[FilePage]:
        # The first page is not kept waiting for others.
        ends = (0, *range(1, len(numbers), BATCH), len(numbers))
        for start, end in pairwise(ends):
            yield from self._render(numbers[start:end])

    def _render(self, numbers: Sequence[int]) -> Iterator[FilePage]:
        found = {number: self._rendered.find(self._key(number)) for number in numbers}
        for run in _runs([number for number, pages in found.items() if pages is None]):
            found.update(self._render_run(run))
        for number, pages in found.items():
            yield from self._render_wide(number) if pages is None else pages

    def _render_run(self, run: Sequence[int]) -> Iterator[tuple[int, Pages]]:
        """Render segments that follow one another, but for those of which one alone is too much at once."""
        while run:
            rows = self._files.rows(run[0] * SEGMENT_ROWS, len(run) * SEGMENT_ROWS)
            ends = [0, *accumulate(_live(self._files, number) for number in run)]
            count = bisect_right(ends, fitting(rows, pages=_WEIGHED * BATCH)) - 1
            batch = render_batch(rows.head(ends[count]), ActionKind.FILE, self._line, self._grant)
            for number, (start, end) in zip(run[:count], pairwise(ends), strict=False):
                pages = batch.segment(start, end)
                self._rendered.keep(self._key(number), pages)
                yield number, pages
            run = run[max(count, 1) :]

    def _render_wide(self, number: int) -> Iterator[FilePage]:
        """Render a segment of very long lines, a part at a time and without keeping it."""
        rows = self._files.rows(number * SEGMENT_ROWS, SEGMENT_ROWS)
        while not rows.is_empty():
            count = fitting(rows, pages=BATCH)
            yield from render_batch(rows.head(count), ActionKind.FILE, self._line, self._grant).segment(
                0, count
            )
            rows = rows.slice(count)

    def _key(self, number: int) -> Hashable:
        return self._files.segments.identity(number), self._form


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """Return numbers, which ascend, in runs of such as follow one another."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _live(files: Files, number: int) -> int:
    if files.live is None:
        return min(SEGMENT_ROWS, files.height - number * SEGMENT_ROWS)
    return int(_part(files.live, number).sum())


def _part(rows: pl.Series, number: int) -> pl.Series:
    return rows.slice(number * SEGMENT_ROWS, SEGMENT_ROWS)
