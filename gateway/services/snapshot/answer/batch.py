"""Rendered rows, and the pages that they are cut into."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final

import polars as pl

from gateway.domain.grant import Grant
from gateway.services.snapshot.answer.deletion_vector import Vectors, find_vectors
from gateway.services.snapshot.answer.line import ActionKind, Holes, LineFormat, render_lines
from gateway.services.snapshot.answer.locate import locate
from gateway.services.snapshot.log.path import encode_paths
from gateway.services.snapshot.log.schema import ENCODED
from gateway.v1.snapshot_pb2 import FilePage, PathGroup

MAX_FILES: Final = 1000
MAX_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Lines of files, one for each."""

    texts: Sequence[str] = field(repr=False)
    # The bytes of lines up to a row; and with those of their paths. Both start with a nought.
    ends: Sequence[int] = field(repr=False)
    weights: Sequence[int] = field(repr=False)
    holes: Sequence[Holes] = field(repr=False)
    # Paths of the URLs in their order, the numbers of their locations, and how many there are up to a row.
    paths: Sequence[str] = field(repr=False)
    locations: Sequence[int] = field(repr=False)
    path_ends: Sequence[int] = field(repr=False)
    sizes: Sequence[int] = field(repr=False)

    def pages(self) -> Iterator[FilePage]:
        """Return pages that are as large as they may be."""
        start, height = 0, len(self.texts)
        while start < height:
            within = bisect_right(self.weights, self.weights[start] + MAX_BYTES) - 1
            end = min(max(within, start + 1), start + MAX_FILES, height)
            yield self.page(start, end)
            start = end

    def page(self, start: int, end: int) -> FilePage:
        """Return the page of some of the rows."""
        base, rows = self.ends[start], slice(start, end)
        urls = slice(self.path_ends[start], self.path_ends[end])
        groups, hole_groups = _groups(self.paths[urls], self.locations[urls])
        starts = zip(self.ends[rows], self.holes[rows], strict=True)
        return FilePage(
            lines="".join(self.texts[rows]).encode(),
            holes=[at - base + offset for at, holes in starts for offset in holes.offsets],
            hole_kinds=b"".join([holes.kinds for holes in self.holes[rows]]),
            groups=groups,
            hole_groups=hole_groups,
            files=end - start,
            file_bytes=sum(self.sizes[rows]),
        )


def render_batch(rows: pl.DataFrame, kind: ActionKind, line: LineFormat, grant: Grant) -> Batch:
    """Render rows, whose columns are those of their action in the log."""
    encoded = rows[ENCODED] if ENCODED in rows.columns else encode_paths(rows["path"])
    vectors = find_vectors(rows["deletionVector"], grant) if "deletionVector" in rows.columns else None
    places = locate(rows["path"], encoded, grant)
    lines = render_lines(rows, kind, line, vectors)
    lengths = lines.texts.str.len_bytes().cast(pl.Int64)
    # With the newline that each path is followed by.
    weights = lengths + places.paths.str.len_bytes().cast(pl.Int64) + 1
    paths, locations = places.paths.to_list(), places.locations.to_list()
    path_ends: Sequence[int] = range(rows.height + 1)
    if vectors is not None:
        vector_paths = _scattered(vectors, "encoded", rows.height)
        weights += (vector_paths.str.len_bytes() + 1).fill_null(0)
        paths = _interleaved(places.paths, vector_paths)
        locations = _interleaved(places.locations, _scattered(vectors, "location", rows.height))
        path_ends = [0, *accumulate(len(holes.offsets) - 1 for holes in lines.holes)]
    return Batch(
        texts=lines.texts.to_list(),
        ends=[0, *lengths.cum_sum().to_list()],
        weights=[0, *weights.cum_sum().to_list()],
        holes=lines.holes,
        paths=paths,
        locations=locations,
        path_ends=path_ends,
        sizes=rows["size"].to_list(),
    )


def _interleaved(files: pl.Series, vectors: pl.Series) -> list[Any]:
    """Return values in the order of their holes: a file's own, then its vector's if it has one."""
    pairs = zip(files.to_list(), vectors.to_list(), strict=True)
    return [value for pair in pairs for value in pair if value is not None]


def _scattered(vectors: Vectors, name: str, height: int) -> pl.Series:
    """Return a column of vectors at their rows, and null where there is none."""
    values = vectors.frame[name]
    return pl.repeat(None, height, dtype=values.dtype, eager=True).scatter(vectors.rows, values)


def _groups(paths: Sequence[str], locations: Sequence[int]) -> tuple[list[PathGroup], bytes]:
    numbers = sorted(set(locations))
    if len(numbers) == 1:
        return [PathGroup(location=numbers[0], paths="\n".join(paths).encode())], b""
    below: dict[int, list[str]] = {number: [] for number in numbers}
    for path, number in zip(paths, locations, strict=True):
        below[number].append(path)
    places = {number: place for place, number in enumerate(numbers)}
    groups = [PathGroup(location=number, paths="\n".join(part).encode()) for number, part in below.items()]
    return groups, bytes(places[number] for number in locations)
