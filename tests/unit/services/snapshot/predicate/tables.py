"""Files with statistics, made without a log."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.schema import FILES
from gateway.services.snapshot.predicate.hints import Hints, parse_hints
from gateway.services.snapshot.predicate.prune import find_kept
from gateway.services.snapshot.state.files import Files


def column(name: str, type_: Any, **notes: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": True, "metadata": notes}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def metadata_with(
    *fields: dict[str, Any], partitions: tuple[str, ...] = (), **configuration: str
) -> Metadata:
    return Metadata(
        id="t",
        schema_string=json.dumps(struct(*fields)),
        partition_columns=partitions,
        configuration=configuration,
    )


def stats_of(low=None, high=None, nulls=None, records=None, name="c", **more: Any) -> str:
    """Return the statistics of one column; what is None is left out."""
    found: dict[str, Any] = dict(more)
    if records is not None:
        found["numRecords"] = records
    for kind, value in (("minValues", low), ("maxValues", high), ("nullCount", nulls)):
        if value is not None:
            found[kind] = {name: value}
    return json.dumps(found)


def files_of(*stats: str | None, partitions: list[dict[str, str | None]] | None = None, parsed=None) -> Files:
    count = len(stats) or len(partitions or [])
    rows = [
        {
            "path": f"f{index}",
            "size": 1,
            "stats": stats[index] if stats else None,
            "partitionValues": partitions[index] if partitions else {},
        }
        for index in range(count)
    ]
    frame = pl.DataFrame(rows, schema={name: FILES[name] for name in rows[0]}).with_columns(
        pl.lit(None, dtype=dtype).alias(name) for name, dtype in FILES.items() if name not in rows[0]
    )
    return Files(frame=frame.select(list(FILES)), parsed=parsed, num_files=count, size=count)


def kept_by(files: Files, metadata: Metadata, *sql: str, predicate: Any = "") -> list[bool]:
    """Return which files are kept; ``predicate`` is a JSON predicate, as a text or a tree."""
    hints = hints_of(metadata, *sql, predicate=predicate)
    kept = find_kept(files, hints)
    return [True] * files.height if kept is None else kept.to_list()


def hints_of(metadata: Metadata, *sql: str, predicate: Any = "") -> Hints:
    text = predicate if isinstance(predicate, str) else json.dumps(predicate)
    return parse_hints(sql, text, metadata)
