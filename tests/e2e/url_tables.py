"""Tables that are written once and copied to each store, and what an independent reader finds in them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from gateway.demo.data_file import to_data_file
from gateway.demo.schema import Field
from gateway.demo.table_builder import TableBuilder
from gateway.demo.table_feature import with_features
from tests.contract.vendor import AWKWARD, AWKWARD_FILES, VICTIMS
from tests.e2e.official_client import PYTHON, environment, require_environment
from tests.repository import ROOT

# What a directory's name and a URL must escape, each in its own way.
ODD_VALUES = (
    *("plain", "a b", "100%", "%20", "a=b", "a+b", "#1", "who?", "a&b;c", "Grüße 東京", "~(x)!$'*,@:", None),
)
# Keys that are stored just so, and what each would be if it were decoded once too often.
ODD_KEYS = (*AWKWARD, *AWKWARD_FILES)

PLAIN = "plain"
ODD = "odd_partitions"
AWKWARD_KEYS = "awkward_keys"
VECTORS = "vectors_and_mapping"
FEED = "feed"
# These two are written by deltalake.
SPECIAL = "partition_strings"
FEED_PARTITIONED = "feed_partitioned"

TABLES = (PLAIN, ODD, AWKWARD_KEYS, VECTORS, FEED, SPECIAL, FEED_PARTITIONED)
# What the parquet format cannot express.
NEED_DELTA = frozenset({VECTORS})

_ID, _PART = Field("id", "long"), Field("part", "string")
_FEED_PARTS = ("50% + more?", "a=b #1", "Grüße")


@dataclass(frozen=True, slots=True)
class Written:
    """The tables in a directory, and what deltalake reads of each there."""

    directory: Path
    said: Mapping[str, Any]

    def latest(self, name: str) -> dict[str, Any]:
        """Return the columns and rows of the latest version."""
        return self.at(name, self.version(name))

    def at(self, name: str, version: int) -> dict[str, Any]:
        found: dict[str, Any] = self.said[name]["versions"][version]
        return found

    def version(self, name: str) -> int:
        return len(self.said[name]["versions"]) - 1

    def changes(self, name: str) -> dict[str, Any]:
        """Return all changes of a table with a feed, without their times."""
        return FEED_CHANGES if name == FEED else without_time(self.said[name]["changes"])

    def files(self, name: str) -> Iterator[tuple[str, bytes]]:
        """Return all files of a table by their paths below it, the log's in the order of its versions."""
        table = self.directory / name
        for file in sorted(file for file in table.rglob("*") if file.is_file()):
            yield file.relative_to(table).as_posix(), file.read_bytes()


def write(directory: Path) -> Written:
    """Write all tables, and have deltalake read them."""
    require_environment()
    for name, build in _BUILT.items():
        build(directory / name)
    output = subprocess.run(
        [PYTHON, "-m", "tests.e2e.write_url_tables", directory, *(_BUILT.keys() - {AWKWARD_KEYS})],
        check=True,
        capture_output=True,
        cwd=ROOT,
        env=environment(),
    ).stdout
    # deltalake reads no local file whose name begins with a number sign: here its writer has to be believed.
    awkward = [json.dumps({"id": number, "part": key}) for number, key in enumerate(ODD_KEYS)]
    own = {AWKWARD_KEYS: {"versions": [{"columns": ["id", "part"], "rows": sorted(awkward)}]}}
    return Written(directory, json.loads(output) | own)


def without_time(frame: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes without the time of their commits, which is the store's own."""
    rows = (json.loads(row) for row in frame["rows"])
    kept = ({key: value for key, value in row.items() if key != "_commit_timestamp"} for row in rows)
    return {
        "columns": sorted(name for name in frame["columns"] if name != "_commit_timestamp"),
        "rows": sorted(json.dumps(row, sort_keys=True) for row in kept),
    }


def append(table: TableBuilder, first: int, count: int) -> TableBuilder:
    """Add rows with ids from one on, a file each."""
    return table.append(
        [{"id": number, "part": PLAIN} for number in range(first, first + count)], files=count
    )


def plain_table(directory: Path, files: int = 6) -> TableBuilder:
    return append(TableBuilder(directory, [_ID, _PART]), 0, files)


def _build_odd(directory: Path) -> None:
    rows = [
        {"id": 10 * number + each, "part": value}
        for number, value in enumerate(ODD_VALUES)
        for each in range(3)
    ]
    TableBuilder(directory, [_ID, _PART], partition_by=["part"]).append(rows)


def _build_awkward(directory: Path) -> None:
    table = TableBuilder(directory, [_ID, _PART])
    table.commit(*(_place(table, key, number) for number, key in enumerate(ODD_KEYS)))
    for victim in VICTIMS:
        place = directory / victim
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"not in the table")


def _place(table: TableBuilder, key: str, number: int) -> dict[str, Any]:
    file = to_data_file(pl.DataFrame({"id": [number], "part": [key]}))
    place = table.directory / key
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(file.content)
    return {
        "add": {
            # A colon in the first part of a path would make it a URI of its own.
            "path": quote(key),
            "partitionValues": {},
            "size": len(file.content),
            "modificationTime": table.next_ms,
            "dataChange": True,
            "stats": file.stats,
        }
    }


def _build_vectors(directory: Path) -> None:
    features: dict[str, Any] = with_features("deletionVectors", "columnMapping")
    table = TableBuilder(directory, [_ID, Field("note", "string"), _PART], partition_by=["part"], **features)
    table.append(
        [{"id": number, "note": f"note {number}", "part": ODD_VALUES[number % 6]} for number in range(36)]
    )
    table.delete_by_vector(pl.col("id").is_in([0, 7, 8]), prefix="dv")
    table.rename_column("note", "what was said").delete_by_vector(pl.col("id") == 20, "i")


def _build_feed(directory: Path) -> None:
    features: dict[str, Any] = with_features("changeDataFeed")
    table = TableBuilder(directory, [_ID, _PART], partition_by=["part"], **features).create()
    table.append([{"id": number, "part": _FEED_PARTS[number % 3]} for number in range(9)])
    table.update(pl.col("id").is_in([0, 4]), id=pl.col("id") + 100)
    table.delete(pl.col("id").is_in([2, 8]))
    table.append([{"id": 9, "part": _FEED_PARTS[0]}])


_BUILT: Mapping[str, Callable[[Path], object]] = {
    PLAIN: plain_table,
    ODD: _build_odd,
    AWKWARD_KEYS: _build_awkward,
    VECTORS: _build_vectors,
    FEED: _build_feed,
}


def _feed_changes() -> dict[str, Any]:
    """Return what its writer did: deltalake finds no file of a feed whose path has an escape in it."""
    updates = (("update_preimage", 0), ("update_postimage", 100))
    done = [
        *(("insert", 1, number, number % 3) for number in range(9)),
        *((change, 2, number + more, number % 3) for number in (0, 4) for change, more in updates),
        *(("delete", 3, number, number % 3) for number in (2, 8)),
        ("insert", 4, 9, 0),
    ]
    names = ("_change_type", "_commit_version", "id", "part")
    rows = [dict(zip(names, (*change, _FEED_PARTS[part]), strict=True)) for *change, part in done]
    return {"columns": list(names), "rows": sorted(json.dumps(row, sort_keys=True) for row in rows)}


FEED_CHANGES = _feed_changes()
