"""From commits to the pages of an answer, file by file from a cursor on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl

from gateway.domain.grant import Grant
from gateway.services.snapshot.answer.batch import MAX_BYTES, MAX_FILES
from gateway.services.snapshot.answer.head import render_metadata, render_protocol
from gateway.services.snapshot.answer.line import ActionKind, LineFormat
from gateway.services.snapshot.answer.page import join_pages, render_actions
from gateway.services.snapshot.changes.commit import Commit
from gateway.services.snapshot.changes.question import ChangeCursor
from gateway.services.snapshot.changes.removed import completed
from gateway.services.snapshot.changes.selection import Selection
from gateway.services.snapshot.changes.stamp import Piece, render_pieces
from gateway.services.snapshot.log.protocol import Protocol
from gateway.v1 import snapshot_pb2 as pb

# From so many files on a commit's are rendered by themselves.
_MANY: Final = 200

# Files, or lines about the table itself.
Part = Piece | bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the changes of one answer are written."""

    selection: Selection
    response_format: pb.ResponseFormat.ValueType
    file_id_hash: pb.FileIdHash.ValueType
    # The version whose protocol and metadata are the answer's head.
    first: int
    with_metadata: bool
    # Those of later versions that are told.
    protocols: Mapping[int, Protocol] = field(repr=False)
    # What removes lack; None: nothing.
    details: pl.DataFrame | None = field(default=None, repr=False)
    grant: Grant


class Rendering:
    """Renders commits in order, until it has told so many files; ``stopped_at`` then says where it did."""

    def __init__(self, layout: Layout, start: ChangeCursor, max_files: int | None) -> None:
        self.stopped_at: ChangeCursor | None = None
        self._layout = layout
        self._start = start
        self._left = max_files

    def pages(self, commits: Iterable[Commit]) -> Iterator[pb.FilePage]:
        """Render page after page as they are asked for, each filled up from as many commits as it takes."""
        waiting: list[Part] = []
        files = 0
        for part in self._parts(commits):
            height = part.rows.height if isinstance(part, Piece) else 0
            if waiting and (height >= _MANY or files + height > MAX_FILES):
                yield from self._together(waiting)
                waiting, files = [], 0
            if isinstance(part, Piece) and height >= _MANY:
                yield from self._alone(part)
            else:
                waiting.append(part)
                files += height
        if waiting:
            yield from self._together(waiting)

    def _parts(self, commits: Iterable[Commit]) -> Iterator[Part]:
        for commit in commits:
            yield from self._parts_of(commit)
            if self.stopped_at is not None:
                return

    def _parts_of(self, commit: Commit) -> Iterator[Part]:
        position = 0
        start = self._start.index if commit.version == self._start.version else 0
        selected = self._layout.selection(commit)
        has_files = sum(rows.height for _, rows in selected) > start
        # Lines about the table belong to the page that begins with the first file beside them.
        if start == 0 and not (has_files and self._left == 0) and (lines := self._lines(commit)):
            yield lines
        for kind, rows in selected:
            skipped = min(max(start - position, 0), rows.height)
            rest = rows.slice(skipped, self._left)
            if not rest.is_empty():
                yield Piece(kind=kind, rows=rest, version=commit.version, timestamp=commit.timestamp)
            self._left = None if self._left is None else self._left - rest.height
            if skipped + rest.height < rows.height:
                self.stopped_at = ChangeCursor(version=commit.version, index=position + skipped + rest.height)
                return
            position += rows.height

    def _alone(self, piece: Piece) -> Iterator[pb.FilePage]:
        line = self._line(version=piece.version, timestamp=piece.timestamp)
        return render_actions(self._complete(piece).rows, piece.kind, line, self._layout.grant)

    def _together(self, parts: Sequence[Part]) -> Iterator[pb.FilePage]:
        pieces = [self._complete(part) for part in parts if isinstance(part, Piece)]
        rendered = render_pieces(pieces, self._line(), self._layout.grant)
        pages = (next(rendered) if isinstance(part, Piece) else pb.FilePage(lines=part) for part in parts)
        fitting: list[pb.FilePage] = []
        size = 0
        for page in pages:
            if fitting and size + len(page.lines) > MAX_BYTES:
                yield join_pages(fitting)
                fitting, size = [], 0
            fitting.append(page)
            size += len(page.lines)
        yield join_pages(fitting)

    def _complete(self, piece: Piece) -> Piece:
        if piece.kind is not ActionKind.REMOVE or self._layout.details is None:
            return piece
        return replace(piece, rows=completed(piece.rows, self._layout.details))

    def _line(self, version: int | None = None, timestamp: int | None = None) -> LineFormat:
        return LineFormat(
            response_format=self._layout.response_format,
            file_id_hash=self._layout.file_id_hash,
            version=version,
            timestamp=timestamp,
        )

    def _lines(self, commit: Commit) -> bytes:
        """Return what a later version says of the table itself, where that is asked for."""
        layout, lines = self._layout, b""
        if commit.version == layout.first:
            # Those are the answer's head.
            return lines
        if (protocol := layout.protocols.get(commit.version)) is not None:
            lines += render_protocol(protocol, layout.response_format, commit.version)
        if commit.metadata is not None and layout.with_metadata:
            lines += render_metadata(
                commit.metadata, layout.grant, layout.response_format, version=commit.version
            )
        return lines
