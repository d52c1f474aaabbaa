"""Streams for Arrow, over a directory or over URLs: what DuckDB and Polars read URLs through, too."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sluice_recipient.access import DIR
from sluice_recipient.engines.arrow_type import to_schema, to_value
from sluice_recipient.engines.deltalake import SCHEMES, open_deltalake
from sluice_recipient.engines.installed import load
from sluice_recipient.engines.official import load_pandas
from sluice_recipient.listing import NeedsDeltaFormat, SharedFile
from sluice_recipient.url_files import UrlFiles, Version

if TYPE_CHECKING:
    from sluice_recipient.table import SharedTable


class UrlStream:
    """The rows of a table's files, which are read anew whenever somebody asks for them."""

    def __init__(self, files: UrlFiles) -> None:
        arrow = load("pyarrow.dataset", "url")
        self.schema = to_schema(files.schema)
        self._files = files
        # Spark writes times in a form that knows nanoseconds, where Delta has microseconds.
        reading = arrow.ParquetReadOptions(coerce_int96_timestamp_unit="us")
        self._parquet = arrow.ParquetFileFormat(read_options=reading)

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Return an Arrow table for each file, with these columns or with all."""
        for file, content in self._files.contents():
            fragment = self._parquet.make_fragment(
                _buffer(content), partition_expression=_partition(file, self.schema)
            )
            yield fragment.to_table(schema=self.schema, columns=columns)

    def reader(self) -> Any:
        """Return a ``pyarrow.RecordBatchReader``."""
        batches = (batch for table in self.tables() for batch in table.to_batches())
        return load("pyarrow", "url").RecordBatchReader.from_batches(self.schema, batches)

    def __arrow_c_schema__(self) -> Any:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.reader().__arrow_c_stream__(requested_schema)


def read_arrow(table: SharedTable, version: Version | None) -> Any:
    """Return a ``pyarrow.RecordBatchReader``."""
    if table.access_for("pyarrow", SCHEMES) == DIR:
        return open_directory(table, version).scanner().to_reader()
    found = open_urls(table, version)
    return found.reader() if isinstance(found, UrlStream) else found.to_reader()


def open_directory(table: SharedTable, version: Version | None) -> Any:
    """Return a ``pyarrow.dataset.Dataset``, of which nothing is read that a filter leaves out."""
    delta = open_deltalake(table, {} if version is None else {"version": version})
    try:
        return delta.to_pyarrow_dataset()
    except load("deltalake.exceptions", "deltalake").DeltaProtocolError:
        # Arrow's dataset knows no deletion vectors; delta-rs does, and then reads the table whole.
        return load("pyarrow.dataset", "url").dataset(_read_whole(delta))


def open_urls(table: SharedTable, version: Version | None) -> Any:
    """Return a stream, or an Arrow table where only the official client knows what is in the files."""
    pyarrow = load("pyarrow", "url")
    try:
        return UrlStream(table.files(version))
    except NeedsDeltaFormat:
        return pyarrow.Table.from_pandas(load_pandas(table, version), preserve_index=False)


def _buffer(content: bytes) -> Any:
    """Return a file in memory of Arrow's own: its threads may let go of it when Python has ended."""
    pyarrow = load("pyarrow", "url")
    buffer = pyarrow.allocate_buffer(len(content))
    memoryview(buffer).cast("B")[:] = content
    return pyarrow.BufferReader(buffer)


def _partition(file: SharedFile, schema: Any) -> Any:
    """Return what holds for every row of a file, from which Arrow also takes its partition columns."""
    field = load("pyarrow.compute", "url").field
    known = [
        _holds(field(name), text, schema.field(name).type) for name, text in file.partition_values.items()
    ]
    return functools.reduce(operator.and_, known) if known else None


def _holds(column: Any, text: str | None, type_: Any) -> Any:
    # Delta has no empty partition value: it stands for null.
    return column == to_value(text, type_) if text else column.is_null()


def _read_whole(delta: Any) -> Any:
    deltalake = load("deltalake", "deltalake")
    batches = deltalake.QueryBuilder().register("shared", delta).execute("select * from shared")
    return load("pyarrow", "url").RecordBatchReader.from_stream(batches).read_all()
