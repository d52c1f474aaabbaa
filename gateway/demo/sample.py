"""The sample share: tables built once in a directory, and what a configuration says of them."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from gateway.demo.sample_tables import SAMPLE_TABLES, SampleTable
from gateway.errors import InvalidArgument

Progress = Callable[[str], None]

SHARE: Final = "sample"
SHARE_COMMENT: Final = "tables to try the gateway with"
# To be raised with any change of what the tables hold: an older sample is then built anew.
SAMPLE_VERSION: Final = 2

_MARKER: Final = "sample.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCatalog:
    """The sample share and where its tables are."""

    directory: Path
    tables: Sequence[SampleTable] = SAMPLE_TABLES

    def location_of(self, table: SampleTable) -> Path:
        return self.directory / table.schema / table.name

    def to_shares(self) -> list[dict[str, Any]]:
        """Return the ``shares`` of a configuration."""
        schemas = dict.fromkeys(table.schema for table in self.tables)
        return [
            {
                "name": SHARE,
                "comment": SHARE_COMMENT,
                "schemas": [
                    {"name": schema, "tables": [self._entry(t) for t in self.tables if t.schema == schema]}
                    for schema in schemas
                ],
            }
        ]

    def _entry(self, table: SampleTable) -> dict[str, Any]:
        return {
            "name": table.name,
            "location": str(self.location_of(table)),
            "historyShared": table.history_shared,
        }


def ensure_sample(
    directory: Path,
    progress: Progress,
    *,
    tables: Sequence[SampleTable] = SAMPLE_TABLES,
    version: int = SAMPLE_VERSION,
) -> SampleCatalog:
    """Build the sample in a directory unless it is there; safe to be killed and to be run twice at once."""
    catalog = SampleCatalog(directory=directory, tables=tables)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with _alone(directory.with_name(f".{directory.name}.lock")):
        if _version_of(directory) != version:
            _build(catalog, version, progress)
    return catalog


def _build(catalog: SampleCatalog, version: int, progress: Progress) -> None:
    directory = catalog.directory
    if directory.exists() and any(directory.iterdir()) and _version_of(directory) is None:
        raise InvalidArgument(f"{directory} holds something else than the sample; choose another directory")
    # Built beside its place and moved there when it is whole.
    building = directory.with_name(f".{directory.name}.building")
    shutil.rmtree(building, ignore_errors=True)
    for number, table in enumerate(catalog.tables, start=1):
        progress(
            f"sample table {number} of {len(catalog.tables)}: {table.schema}.{table.name}, {table.comment}"
        )
        table.build(replace(catalog, directory=building).location_of(table))
    (building / _MARKER).write_text(json.dumps({"version": version}))
    shutil.rmtree(directory, ignore_errors=True)
    building.rename(directory)


def _version_of(directory: Path) -> int | None:
    try:
        version = json.loads((directory / _MARKER).read_text())["version"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return version if isinstance(version, int) else None


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
