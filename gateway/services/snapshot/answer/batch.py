"""Rendered rows, and the pages that they are cut into."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from gateway.domain.grant import Grant
from gateway.services.snapshot.answer.deletion_vector import Vectors, find_vectors
from gateway.services.snapshot.answer.line import ActionKind, LineFormat, Lines, render_lines
from gateway.services.snapshot.answer.locate import Places, locate
from gateway.services.snapshot.log.path import encode_paths
from gateway.services.snapshot.log.schema import ENCODED
from gateway.v1.snapshot_pb2 import FilePage, PathGroup

MAX_FILES: Final = 1000
MAX_BYTES: Final = 1024 * 1024

_OWN: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Lines of files, one for each, as columns: an object for each row would cost as much as to render it."""

    texts: pl.Series = field(repr=False)
    # Where in all of the texts something goes, and what: a byte for each.
    holes: pl.Series = field(repr=False)
    hole_kinds: bytes = field(repr=False)
    # Paths of the URLs in their order, and the numbers of their locations.
    urls: Places
    sizes: pl.Series = field(repr=False)
    # Up to a row, starting with a nought: the bytes of lines; those of lines and paths; how many URLs.
    ends: Sequence[int] = field(repr=False)
    weights: Sequence[int] = field(repr=False)
    url_ends: Sequence[int] = field(repr=False)

    def pages(self) -> Iterator[FilePage]:
        """Return pages that are as large as they may be."""
        return self._pages(0, self.sizes.len(), is_segment=False)

    def segment(self, start: int, end: int) -> list[FilePage]:
        """Return the pages of some of the rows, which are all that are live of a segment."""
        return list(self._pages(start, end, is_segment=True))

    def page(self, start: int, end: int, *, is_segment: bool = False) -> FilePage:
        """Return the page of some of the rows."""
        count, first, last = end - start, self.url_ends[start], self.url_ends[end]
        paths, locations = (
            column.slice(first, last - first) for column in (self.urls.paths, self.urls.locations)
        )
        groups, hole_groups = _groups(paths, locations, is_segment=is_segment)
        # Each line has one for its expiration beside those for its URLs.
        holes = slice(first + start, last + end)
        return FilePage(
            lines=_joined(self.texts.slice(start, count), ""),
            holes=(self.holes[holes] - self.ends[start]).to_list(),
            hole_kinds=self.hole_kinds[holes],
            groups=groups,
            hole_groups=hole_groups,
            files=count,
            file_bytes=int(self.sizes.slice(start, count).cast(pl.Int128).sum()),
        )

    def _pages(self, start: int, stop: int, *, is_segment: bool) -> Iterator[FilePage]:
        while start < stop:
            within = bisect_right(self.weights, self.weights[start] + MAX_BYTES) - 1
            end = min(max(within, start + 1), start + MAX_FILES, stop)
            yield self.page(start, end, is_segment=is_segment)
            start = end


def render_batch(rows: pl.DataFrame, kind: ActionKind, line: LineFormat, grant: Grant) -> Batch:
    """Render rows, whose columns are those of their action in the log."""
    encoded = rows[ENCODED] if ENCODED in rows.columns else encode_paths(rows["path"])
    vectors = find_vectors(rows["deletionVector"], grant) if "deletionVector" in rows.columns else None
    files = locate(rows["path"], encoded, grant)
    lines = render_lines(rows, kind, line, vectors)
    lengths = lines.texts.str.len_bytes().cast(pl.Int64)
    # With the newline that each path is followed by.
    weights = lengths + files.paths.str.len_bytes().cast(pl.Int64) + 1
    urls = files
    url_ends: Sequence[int] = range(rows.height + 1)
    if vectors is not None:
        paths, locations = (_scattered(vectors, name, rows.height) for name in ("encoded", "location"))
        weights += (paths.str.len_bytes() + 1).fill_null(0)
        urls = Places(
            paths=_interleaved(files.paths, paths), locations=_interleaved(files.locations, locations)
        )
        url_ends = _ends(1 + paths.is_not_null().cast(pl.Int64)).to_list()
    ends = _ends(lengths)
    return Batch(
        texts=lines.texts,
        holes=_holes(lines, ends.head(rows.height)),
        hole_kinds=_hole_kinds(lines),
        urls=urls,
        sizes=rows["size"],
        ends=ends.to_list(),
        weights=_ends(weights).to_list(),
        url_ends=url_ends,
    )


def _ends(lengths: pl.Series) -> pl.Series:
    return pl.concat([pl.Series([0], dtype=pl.Int64), lengths.cast(pl.Int64).cum_sum()], rechunk=True)


def _holes(lines: Lines, starts: pl.Series) -> pl.Series:
    """Return the places of all holes, in order, of lines that start at these places."""
    wide = lines.vector_holes
    if wide is None:
        offsets = [pl.col("at") + offset for offset in lines.holes.offsets]
        return pl.DataFrame({"at": starts}).select(pl.concat_list(offsets).explode()).to_series()
    is_wide = pl.col("is_wide")
    offsets = [
        pl.col("at") + pl.when(is_wide).then(offset).otherwise(other)
        for offset, other in zip(wide.offsets, (*lines.holes.offsets, None), strict=True)
    ]
    shown = pl.DataFrame({"at": starts, "is_wide": lines.has_vector_url})
    return shown.select(pl.concat_list(offsets).explode()).to_series().drop_nulls()


def _hole_kinds(lines: Lines) -> bytes:
    if lines.vector_holes is None or lines.has_vector_url is None:
        return lines.holes.kinds * lines.texts.len()
    kinds = (lines.holes.kinds, lines.vector_holes.kinds)
    return b"".join([kinds[is_wide] for is_wide in lines.has_vector_url.to_list()])


def _interleaved(files: pl.Series, vectors: pl.Series) -> pl.Series:
    """Return values in the order of their holes: a file's own, then its vector's if it has one."""
    pairs = pl.DataFrame({"file": files, "vector": vectors})
    return pairs.select(pl.concat_list("file", "vector").explode()).to_series().drop_nulls()


def _scattered(vectors: Vectors, name: str, height: int) -> pl.Series:
    """Return a column of vectors at their rows, and null where there is none."""
    values = vectors.frame[name]
    return pl.repeat(None, height, dtype=values.dtype, eager=True).scatter(vectors.rows, values)


def _groups(paths: pl.Series, locations: pl.Series, *, is_segment: bool) -> tuple[list[PathGroup], bytes]:
    if not locations.max():
        return ([_group(_OWN, paths, is_segment=is_segment)] if paths.len() else []), b""
    numbers = sorted(locations.unique().to_list())
    groups = [_group(number, paths.filter(locations == number), is_segment=is_segment) for number in numbers]
    if len(numbers) == 1:
        return groups, b""
    places = {number: place for place, number in enumerate(numbers)}
    return groups, bytes(places[number] for number in locations.to_list())


def _group(location: int, paths: pl.Series, *, is_segment: bool) -> PathGroup:
    return PathGroup(location=location, paths=_joined(paths, "\n"), is_segment=is_segment)


def _joined(texts: pl.Series, separator: str) -> bytes:
    return texts.str.join(separator).item().encode() if texts.len() else b""
