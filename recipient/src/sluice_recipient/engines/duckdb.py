"""Relations for DuckDB, over Arrow: its own readers of Delta and S3 are extensions, which a wheel lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluice_recipient.access import DIR
from sluice_recipient.engines.arrow import open_directory, open_urls
from sluice_recipient.engines.deltalake import SCHEMES
from sluice_recipient.engines.installed import load
from sluice_recipient.url_files import Version

if TYPE_CHECKING:
    from sluice_recipient.table import SharedTable


def scan_duckdb(table: SharedTable, connection: Any, version: Version | None) -> Any:
    """Return a relation; what DuckDB pushes down is not read needlessly from a directory."""
    duckdb = load("duckdb", "duckdb")
    is_directory = table.access_for("duckdb", SCHEMES) == DIR
    found = open_directory(table, version) if is_directory else open_urls(table, version)
    return (connection or duckdb).from_arrow(found)
