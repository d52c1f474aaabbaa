"""Rows of a log and tables made of them, and what a client sees of the pages that they become."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from gateway.domain.grant import Grant
from gateway.ports import LogFile
from gateway.services.snapshot.answer.batch import render_batch
from gateway.services.snapshot.answer.line import ActionKind, LineFormat
from gateway.services.snapshot.answer.rendered import RenderedPages
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.protocol import Protocol
from gateway.services.snapshot.log.schema import CDC, ENCODED, FILES, REMOVE
from gateway.services.snapshot.state.files import Files
from gateway.services.snapshot.state.snapshot import Snapshot
from gateway.v1 import snapshot_pb2 as pb
from tests.builders import STARTED_AT
from tests.fakes.snapshot_metrics import FakeSnapshotMetrics

PARQUET = LineFormat(response_format=pb.RESPONSE_FORMAT_PARQUET)
DELTA = LineFormat(response_format=pb.RESPONSE_FORMAT_DELTA)
EXPIRATION = 1652140800000

SCHEMAS = {
    ActionKind.FILE: FILES,
    ActionKind.ADD: FILES,
    ActionKind.REMOVE: {**REMOVE, ENCODED: pl.String()},
    ActionKind.CDF: {**CDC, ENCODED: pl.String()},
}
_PLAIN = {"partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}


def render_rows(rows: pl.DataFrame, kind: ActionKind, line: LineFormat, grant: Grant) -> pb.FilePage:
    """Render rows as one page, however large."""
    return render_batch(rows, kind, line, grant).page(0, rows.height)


def no_lines() -> RenderedPages:
    """Return what keeps no pages."""
    return RenderedPages(0, FakeSnapshotMetrics())


def rows_of(*rows: Mapping[str, Any], kind: ActionKind = ActionKind.FILE) -> pl.DataFrame:
    """Return actions of a log; their paths are served as they are unless a row says otherwise."""
    schema = SCHEMAS[kind]
    filled = [{ENCODED: row.get("path"), **_PLAIN, **row} for row in rows]
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in filled], schema=schema)


def files_of(*rows: Mapping[str, Any], live: Iterable[bool] | None = None) -> Files:
    frame = rows_of(*rows)
    mask = None if live is None else pl.Series(live, dtype=pl.Boolean)
    count = frame.height if mask is None else int(mask.sum())
    return Files(frame=frame, live=mask, num_files=count, size=int(frame["size"].sum()))


def many(count: int, **fields: Any) -> Files:
    """Return files of the names f0, f1 and so on, alike in all else."""
    names = pl.concat_str(pl.lit("f"), pl.int_range(count))
    rows = rows_of({"path": "f", **fields})
    frame = rows[[0] * count].with_columns(names.alias("path"), names.alias(ENCODED))
    return Files(frame=frame, num_files=count, size=int(frame["size"].sum()))


def snapshot_of(
    *rows: Mapping[str, Any],
    protocol: Protocol | None = None,
    schema: str = '{"type":"struct","fields":[]}',
    **metadata: Any,
) -> Snapshot:
    return Snapshot(
        version=3,
        protocol=protocol or Protocol(min_reader_version=1, min_writer_version=2),
        metadata=Metadata(id="t", schema_string=schema, **metadata),
        files=files_of(*rows),
        anchor=LogFile("anchor", 1, STARTED_AT),
    )


def splice(page: pb.FilePage) -> bytes:
    """Fill the holes as an edge does: a URL names the number of its location, and its path."""
    groups = [(group.location, iter(group.paths.decode().split("\n"))) for group in page.groups]
    order = iter(page.hole_groups or bytes(page.hole_kinds.count(pb.HOLE_URL)))
    pieces, position = [], 0
    for offset, kind in zip(page.holes, page.hole_kinds, strict=True):
        pieces.append(page.lines[position:offset])
        position = offset
        if kind == pb.HOLE_URL:
            location, paths = groups[next(order)]
            pieces.append(f"https://{location}/{next(paths)}".encode())
        else:
            assert kind == pb.HOLE_EXPIRATION
            pieces.append(b"%d" % EXPIRATION)
    assert [next(paths, None) for _, paths in groups] == [None] * len(groups)
    assert next(order, None) is None
    return b"".join([*pieces, page.lines[position:]])


def seen(*pages: pb.FilePage) -> list[dict[str, Any]]:
    """Return the lines as a client parses them: it splits wherever a line may end."""
    return [json.loads(line) for page in pages for line in splice(page).decode().splitlines()]


def seen_files(*pages: pb.FilePage) -> list[dict[str, Any]]:
    return [line["file"] for line in seen(*pages)]


def seen_actions(*pages: pb.FilePage) -> list[dict[str, Any]]:
    """Return what the delta format holds of each file, whichever action it is."""
    return [next(iter(file["deltaSingleAction"].values())) for file in seen_files(*pages)]
