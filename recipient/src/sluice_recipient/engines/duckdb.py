"""Relations for DuckDB, over Arrow: its own readers of Delta and S3 are extensions, which a wheel lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluice_recipient.access import DIR
from sluice_recipient.engines.deltalake import SCHEMES, open_deltalake
from sluice_recipient.engines.installed import load
from sluice_recipient.engines.url import load_pandas

if TYPE_CHECKING:
    from sluice_recipient.table import SharedTable


def scan_duckdb(table: SharedTable, connection: Any) -> Any:
    """Return a relation; columns and filters that DuckDB pushes down are not read needlessly."""
    duckdb = load("duckdb", "duckdb")
    opened = connection or duckdb
    if table.access_for("duckdb", SCHEMES) != DIR:
        return opened.from_df(load_pandas(table))
    delta = open_deltalake(table, {})
    try:
        return opened.from_arrow(delta.to_pyarrow_dataset())
    except load("deltalake.exceptions", "duckdb").DeltaProtocolError:
        # Arrow's dataset knows no deletion vectors; delta-rs does, and then reads the table whole.
        return opened.from_arrow(_read_whole(delta))


def _read_whole(delta: Any) -> Any:
    deltalake = load("deltalake", "duckdb")
    batches = deltalake.QueryBuilder().register("shared", delta).execute("select * from shared")
    return load("pyarrow", "duckdb").RecordBatchReader.from_stream(batches).read_all()
