"""Tables for delta-rs, which asks for the next credential by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from sluice_recipient.access import DIR
from sluice_recipient.engines.installed import load
from sluice_recipient.errors import NotUsable
from sluice_recipient.storage import to_s3

if TYPE_CHECKING:
    from sluice_recipient.table import SharedTable

# Not gs: delta-rs takes keys of service accounts there, and no token.
SCHEMES: Final = frozenset({"s3", "s3a", "abfs", "abfss"})


def open_deltalake(table: SharedTable, options: Mapping[str, Any]) -> Any:
    """Return a ``DeltaTable``."""
    deltalake = load("deltalake", "deltalake")
    if table.access_for("deltalake", SCHEMES) != DIR:
        raise NotUsable(
            f"table {table.name} is read by URLs, and a DeltaTable needs the directory; use to_polars"
        )
    own = table.storage_options(renewed=True)
    given = options.get("storage_options") or {}
    rest = {name: value for name, value in options.items() if name != "storage_options"}
    return deltalake.DeltaTable(to_s3(table.location), storage_options={**own, **given}, **rest)
