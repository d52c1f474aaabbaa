"""Logs of tables without data: many files in a checkpoint, commits after it, and the same bytes each time.

Files have ``STATS_BYTES`` of statistics; one in ten is a tombstone beside them, and one in twenty has a
deletion vector where those are wanted. The commits after the checkpoint add files and remove some of the
first ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from gateway.domain.log import DIRECTORY, HINT, checkpoint_name, commit_name
from gateway.services.snapshot.log.schema import ADD, METADATA, PROTOCOL, REMOVE

# How many commits come after the checkpoint of a log with so many files.
COMMITS = {10_000: 10, 100_000: 50, 1_000_000: 100}
ADDS, REMOVES = 100, 20
ROWS_PER_FILE = 1000
FIRST_ID = 10_000_000_000
STATS_BYTES = 456

_MODIFIED_AT = 1_700_000_000_000
_DAYS = 100
# Shares no factor with any number of files here.
_STEP = 77
_MASK = 2**128 - 1
_KIND = "-" * 38
_COLUMNS = {
    "id": "long",
    "at": "timestamp",
    "device": "string",
    "amount": "double",
    "level": "integer",
    "place": "string",
    "kind": "string",
    "flag": "boolean",
    "day": "string",
}


@dataclass(slots=True, kw_only=True)
class BenchLog:
    """A log on disk that can get another commit."""

    directory: Path
    files: int
    vectors: bool
    version: int
    live: int

    def commit(self) -> int:
        """Write another commit; return its version."""
        self.version += 1
        first = self.files + self.version * ADDS
        adds = _adds(range(first, first + ADDS), vectors=self.vectors)
        # Files of the checkpoint, each once and never side by side.
        gone = [(self.version * REMOVES + number) * _STEP % self.files for number in range(REMOVES)]
        removed = _adds(gone, vectors=self.vectors)
        lines = [
            json.dumps({"commitInfo": {"timestamp": _MODIFIED_AT + self.version, "operation": "MERGE"}}),
            *(_to_json("remove", row) for row in _removes(removed).iter_rows(named=True)),
            *(_to_json("add", row) for row in adds.iter_rows(named=True)),
        ]
        (self.directory / DIRECTORY / commit_name(self.version)).write_text("\n".join(lines) + "\n")
        self.live += ADDS - REMOVES
        return self.version


def write_log(directory: Path, files: int, *, vectors: bool = True) -> BenchLog:
    """Write a checkpoint with so many files, and the commits that go with it."""
    log = directory / DIRECTORY
    log.mkdir(parents=True)
    adds = _adds(range(files), vectors=vectors)
    removes = _removes(_adds(range(-files // 10, 0), vectors=False))
    frame = pl.concat(
        [
            _action("protocol", pl.DataFrame([_protocol(vectors=vectors)], schema=dict(PROTOCOL))),
            _action("metaData", pl.DataFrame([_metadata(files)], schema=dict(METADATA))),
            _action("add", adds),
            _action("remove", removes),
        ],
        how="diagonal",
    )
    frame.write_parquet(log / checkpoint_name(0), compression="snappy")
    hint = {"version": 0, "size": frame.height}
    (log / HINT).write_text(json.dumps(hint))
    # The commit beside a checkpoint says when its version was made, and is not read.
    (log / commit_name(0)).write_text(json.dumps({"commitInfo": {"timestamp": _MODIFIED_AT}}) + "\n")
    made = BenchLog(directory=directory, files=files, vectors=vectors, version=0, live=files)
    for _ in range(COMMITS.get(files, 10)):
        made.commit()
    return made


def _adds(numbers: Sequence[int], *, vectors: bool) -> pl.DataFrame:
    """Return the files with these numbers; each is the same whoever asks for it."""
    number = pl.col("number")
    frame = pl.DataFrame({"number": numbers, "name": [_name(each) for each in numbers]})
    day = pl.format("2024-{}-{}", _two_digits(number % _DAYS // 28 + 1), _two_digits(number % _DAYS % 28 + 1))
    vector = pl.struct(
        storageType=pl.lit("u"),
        pathOrInlineDv=pl.col("name").str.slice(0, 20),
        offset=pl.lit(1, pl.Int32),
        sizeInBytes=pl.lit(40, pl.Int32),
        cardinality=pl.lit(6, pl.Int64),
    )
    has_vector = (number % 20 == 3) & vectors
    known: Mapping[str, pl.Expr] = {
        "path": pl.format("day={}/part-00000-{}.c000.snappy.parquet", day, pl.col("name")),
        "partitionValues": pl.concat_list(pl.struct(key=pl.lit("day"), value=day)),
        "size": 100_000_000 + number,
        "modificationTime": pl.lit(_MODIFIED_AT),
        "dataChange": pl.lit(value=True),
        "stats": _stats(),
        "deletionVector": pl.when(has_vector).then(vector),
    }
    return frame.select(known.get(name, pl.lit(None)).cast(dtype).alias(name) for name, dtype in ADD.items())


def _stats() -> pl.Expr:
    low = FIRST_ID + pl.col("number") * ROWS_PER_FILE
    parts = {
        "id": (low, low + ROWS_PER_FILE - 1),
        "at": (pl.lit('"2024-01-01T00:00:00.000Z"'), pl.lit('"2024-01-01T23:59:59.999Z"')),
        "device": (_quoted("0", 0, 7), _quoted("f", 8, 7)),
        "amount": (pl.lit("0.5"), pl.lit("99.5")),
        "level": (pl.col("number") % 9, pl.col("number") % 9 + 1),
        "place": (_quoted("0", 16, 4), _quoted("f", 21, 10)),
        "kind": (pl.lit(f'"a{_KIND}"'), pl.lit(f'"z{_KIND}"')),
    }
    keys = ",".join(f'"{name}":{{}}' for name in parts).replace("{}", "\0")
    counts = ",".join(f'"{name}":0' for name in _COLUMNS if name != "day")
    text = f'<"numRecords":{ROWS_PER_FILE},"minValues":<{keys}>,"maxValues":<{keys}>,"nullCount":<{counts}>>'
    pieces = text.replace("<", "{").replace(">", "}").split("\0")
    values = [part[0] for part in parts.values()] + [part[1] for part in parts.values()]
    woven = [piece for pair in zip(map(pl.lit, pieces), [*values, pl.lit("")], strict=True) for piece in pair]
    return pl.concat_str(woven)


def _quoted(first: str, start: int, length: int) -> pl.Expr:
    return pl.format('"{}{}"', pl.lit(first), pl.col("name").str.slice(start, length))


def _removes(adds: pl.DataFrame) -> pl.DataFrame:
    known = {
        "path": pl.col("path"),
        "deletionTimestamp": pl.lit(_MODIFIED_AT),
        "dataChange": pl.lit(value=True),
        "extendedFileMetadata": pl.lit(value=True),
        "partitionValues": pl.col("partitionValues"),
        "size": pl.col("size"),
        "deletionVector": pl.col("deletionVector"),
    }
    return adds.select(
        known.get(name, pl.lit(None)).cast(dtype).alias(name) for name, dtype in REMOVE.items()
    )


def _action(name: str, rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(pl.struct(pl.all()).alias(name))


def _name(number: int) -> str:
    """Return a name that does not compress, decided by the number alone."""
    # Odd constants of 128 bits: a multiplication, a fold and another one.
    mixed = (number + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 & _MASK
    return f"{(mixed ^ mixed >> 67) * 0xDA942042E4DD58B5A0761D6478BD642F & _MASK:032x}"


def _two_digits(number: pl.Expr) -> pl.Expr:
    return number.cast(pl.String).str.zfill(2)


def _to_json(name: str, row: Mapping[str, Any]) -> str:
    known = {key: value for key, value in row.items() if value is not None}
    return json.dumps({name: known}, separators=(",", ":"))


def _protocol(*, vectors: bool) -> dict[str, Any]:
    if not vectors:
        return {"minReaderVersion": 1, "minWriterVersion": 2}
    features = ["deletionVectors"]
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": features,
    }


def _metadata(files: int) -> dict[str, Any]:
    columns = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in _COLUMNS.items()
    ]
    return {
        "id": f"00000000-0000-4000-8000-{files:012d}",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": columns}),
        "partitionColumns": ["day"],
        "configuration": {},
        "createdTime": _MODIFIED_AT,
    }
