"""How much a log may hold: a small file can stand for more than any memory, as columns repeat for free."""

from __future__ import annotations

import io
from collections.abc import Sequence
from threading import Lock
from typing import Final

import polars as pl

from gateway.services.snapshot.log.schema import TEXTS

# Of all files of a checkpoint together.
MAX_ROWS: Final = 20_000_000
_MAX_PATHS_OF_ALL: Final = 4 * 1024**3
# Of one file of the log.
_MAX_PATHS: Final = 1024**3
# Of one action; a text in it may be six times as long in JSON, and still fits into a page.
_MAX_PATH: Final = 16 * 1024
_MAX_TEXTS: Final = 1024 * 1024
_WRAPS: Final = 2**32


class Budget:
    """What is left to the files of a checkpoint, which several threads read."""

    def __init__(self, rows: int = MAX_ROWS, path_bytes: int = _MAX_PATHS_OF_ALL) -> None:
        self._rows = rows
        self._path_bytes = path_bytes
        self._lock = Lock()

    def take(self, *, rows: int = 0, path_bytes: int = 0) -> bool:
        """Tell whether there was so much left."""
        with self._lock:
            self._rows -= rows
            self._path_bytes -= path_bytes
            return self._rows >= 0 and self._path_bytes >= 0


def count_rows(parquet: bytes) -> int:
    """Return how many rows a file would be read as, without reading them."""
    # Without a filter it is the file's own word for their number, and no reader goes by that.
    rows = pl.scan_parquet(io.BytesIO(parquet)).filter(pl.lit(value=True)).select(pl.len())
    return int(rows.collect().item())


def may_exceed(lines: Sequence[bytes]) -> bool:
    """Tell whether what lines of JSON say of a file is worth a look: a text is no longer than its line."""
    return max(map(len, lines), default=0) > _MAX_PATH


def path_bytes_of(rows: pl.DataFrame) -> int:
    """Return how long all paths are together."""
    if "path" not in rows.columns or rows.is_empty():
        return 0
    lengths = rows["path"].str.len_bytes()
    # They are added up in the type that they have.
    wraps = rows.height * _number(lengths.max()) >= _WRAPS
    return _number((lengths.cast(pl.UInt64) if wraps else lengths).sum())


def find_excess(rows: pl.DataFrame) -> str | None:
    """Return what is wrong with files that no answer could hold; None if nothing is.

    Their statistics are left out of an answer where these are too long.
    """
    if rows.is_empty():
        return None
    if _number(rows["path"].str.len_bytes().max()) > _MAX_PATH:
        return f"names a file by a path of more than {_MAX_PATH} bytes"
    if path_bytes_of(rows) > _MAX_PATHS:
        return f"names files by more than {_MAX_PATHS} bytes of paths"
    return f"says more than {_MAX_TEXTS} bytes of one file" if _has_long(rows) else None


def _has_long(rows: pl.DataFrame) -> bool:
    lengths = [length for column in rows.get_columns() for length in _lengths(column)]
    # Not even the longest of each together, in nearly all tables: that takes no look at each row.
    if sum(_number(length.max()) for length in lengths) <= _MAX_TEXTS:
        return False
    together = pl.DataFrame([length.alias(str(n)) for n, length in enumerate(lengths)]).sum_horizontal()
    return _number(together.max()) > _MAX_TEXTS


def _lengths(column: pl.Series) -> list[pl.Series]:
    """Return how long the texts of a column are that go into answers as they are."""
    if column.null_count() == column.len():
        return []
    if column.dtype == TEXTS:
        texts = (column.map.keys(), column.map.values())
        return [each.list.eval(_length(pl.element())).list.sum() for each in texts]
    if column.name == "clusteringProvider":
        return [_length_of(column)]
    if column.name == "deletionVector":
        members = column.struct.unnest()
        texts_of = [members[name] for name in ("storageType", "pathOrInlineDv")]
        return [_length_of(text) for text in texts_of if text.null_count() < text.len()]
    return []


def _length_of(texts: pl.Series) -> pl.Series:
    return texts.to_frame("").select(_length(pl.col(""))).to_series()


def _length(text: pl.Expr) -> pl.Expr:
    # Wide enough for a sum, too.
    return text.str.len_bytes().cast(pl.UInt64)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
