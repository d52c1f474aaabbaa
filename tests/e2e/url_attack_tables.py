"""Tables on a store whose logs lead out of their directories, and a clone that may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gateway.demo.schema import Field
from gateway.demo.table_builder import TableBuilder
from gateway.demo.table_feature import with_features
from tests.e2e.url_gateway import Entry, LiveTable
from tests.e2e.url_stores import UrlStore
from tests.e2e.url_tables import plain_table

ORIGIN = "origin"
CLONE = "clone"
# Each has a log that leads out of its directory.
LEADING_OUT = ("outside", "beside", "dots", "escaped_dots", "half_escaped_dots", "vector_outside", "sibling")

# Those whose entries name the origin as another place of theirs.
BY_ENTRY = (CLONE, "sibling", "beside")

FIELDS = [Field("id", "long"), Field("part", "string")]


def upload_attacks(directory: Path, store: UrlStore) -> None:
    """Build the tables in a new directory, and copy them to a store."""
    origin = plain_table(directory / ORIGIN)
    LiveTable(ORIGIN, origin, store)
    for name in (CLONE, *LEADING_OUT):
        LiveTable(name, _leading_to(directory / name, name, origin, store.prefix), store)


def attack_entries(store: UrlStore) -> list[Entry]:
    """Return the entries of the tables in the catalog."""
    other = {"auxiliaryLocations": [f"{store.prefix}/{ORIGIN}"]}
    return [{"name": each, **(other if each in BY_ENTRY else {})} for each in (CLONE, *LEADING_OUT)]


def _leading_to(directory: Path, name: str, origin: TableBuilder, prefix: str) -> TableBuilder:
    """Return a table whose log names the files of another one, in some way."""
    features: dict[str, Any] = with_features("deletionVectors") if name == "vector_outside" else {}
    table = TableBuilder(directory, FIELDS, **features)
    if name == "vector_outside":
        table.append([{"id": number, "part": "own"} for number in range(4)])
        ((path, add),) = table.live.items()
        vector = {"storageType": "p", "pathOrInlineDv": f"{prefix}/{ORIGIN}/vector.bin"}
        told = {**vector, "offset": 1, "sizeInBytes": 40, "cardinality": 1}
        return table.commit(*table.remove(path), {"add": {**add, "deletionVector": told}})
    root = {
        CLONE: f"{prefix}/{ORIGIN}/",
        "outside": f"{prefix}/{ORIGIN}/",
        # Begins with the name of a place that the entry names.
        "sibling": f"{prefix}/{ORIGIN}-secret/",
        "beside": f"{prefix}/besides/../{ORIGIN}/",
        "dots": f"../{ORIGIN}/",
        "escaped_dots": f"%2e%2e/{ORIGIN}/",
        "half_escaped_dots": f"part=1/.%2E/../{ORIGIN}/",
    }[name]
    return table.commit(*({"add": {**add, "path": root + path}} for path, add in origin.live.items()))
