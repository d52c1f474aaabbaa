"""Small commits rendered many at once, and then given the version and the timestamp of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from gateway.domain.grant import Grant
from gateway.services.snapshot.answer.batch import Batch, render_batch
from gateway.services.snapshot.answer.line import ActionKind, LineFormat
from gateway.v1.snapshot_pb2 import HOLE_EXPIRATION, FilePage

# What is stamped stands before it, in both formats.
_EXPIRATION: Final = b',"expirationTimestamp":'


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Files of one kind of one version."""

    kind: ActionKind
    rows: pl.DataFrame = field(repr=False)
    version: int
    timestamp: int


def render_pieces(pieces: Sequence[Piece], line: LineFormat, grant: Grant) -> Iterator[FilePage]:
    """Render a page for each piece: in all, one step for each kind and not for each version.

    A step over a column costs as much for a row as for hundreds.
    """
    batches = {kind: _batch(pieces, kind, line, grant) for kind in {piece.kind for piece in pieces}}
    offsets = dict.fromkeys(batches, 0)
    for piece in pieces:
        start, end = offsets[piece.kind], offsets[piece.kind] + piece.rows.height
        offsets[piece.kind] = end
        yield _stamped(batches[piece.kind].page(start, end), piece)


def _batch(pieces: Sequence[Piece], kind: ActionKind, line: LineFormat, grant: Grant) -> Batch:
    rows = pl.concat([piece.rows for piece in pieces if piece.kind is kind], rechunk=True)
    return render_batch(rows, kind, line, grant)


def _stamped(page: FilePage, piece: Piece) -> FilePage:
    stamp = b',"version":%d,"timestamp":%d' % (piece.version, piece.timestamp)
    parts: list[bytes] = []
    holes: list[int] = []
    start = 0
    for hole, kind in zip(page.holes, page.hole_kinds, strict=True):
        if kind == HOLE_EXPIRATION:
            parts.append(page.lines[start : hole - len(_EXPIRATION)])
            start = hole - len(_EXPIRATION)
        # One stamp for each part so far.
        holes.append(hole + len(parts) * len(stamp))
    lines = b"".join(part + stamp for part in parts) + page.lines[start:]
    return FilePage(
        lines=lines,
        holes=holes,
        hole_kinds=page.hole_kinds,
        groups=page.groups,
        hole_groups=page.hole_groups,
        files=page.files,
        file_bytes=page.file_bytes,
    )
