"""Pages of a query's answer: lines of JSON with holes where URLs and expirations go."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii
from typing import Final

import polars as pl

from gateway.v1.snapshot_pb2 import HOLE_EXPIRATION, HOLE_URL, FilePage, PathGroup

MAX_FILES: Final = 1000
MAX_BYTES: Final = 1024 * 1024
# Statistics are optional; longer ones would not fit into a message with the escapes that they may need.
MAX_STATS_BYTES: Final = 256 * 1024

_HEAD: Final = '{"file":{"url":"'
_ID: Final = '","id":"'
_EXPIRATION: Final = ',"expirationTimestamp":'
_TAIL: Final = "}}\n"
_KINDS: Final = bytes([HOLE_URL, HOLE_EXPIRATION])
# What a line has besides its path, partition values and statistics, roughly.
_LINE_BYTES: Final = 256
# Far beyond any table, and small enough for a page's sum of records to fit 64 bits.
_MAX_LIMIT: Final = 2**50
_ENTRIES: Final = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """How the lines of one answer are written."""

    file_id: Callable[[bytes], str]
    # Both are given in answers to queries by version or timestamp.
    version: int | None = None
    timestamp: int | None = None


def parquet_file_id(path: bytes) -> str:
    return hashlib.md5(path, usedforsecurity=False).hexdigest()


def delta_file_id(path: bytes) -> str:
    return hashlib.sha256(path).hexdigest()


def render_pages(files: pl.DataFrame, line: LineFormat, limit: int | None = None) -> Iterator[FilePage]:
    """Render page after page as they are asked for, up to the file whose records reach the limit."""
    offset = 0
    while offset < files.height and (limit is None or limit > 0):
        rows = files.slice(offset, MAX_FILES)
        rows = rows.head(_fitting(rows))
        offset += rows.height
        if limit is not None:
            rows, limit = _limited(rows, limit)
        yield _render(rows, line)


def _fitting(rows: pl.DataFrame) -> int:
    """Return how many rows from the front make at most a page of lines, and at least one."""
    length, characters = pl.col("stats").str.len_bytes(), pl.col("stats").str.len_chars()
    # At worst every character is escaped: a quote to two bytes, what is not ASCII to six for each unit.
    stats = pl.when(length <= MAX_STATS_BYTES).then(2 * length + 6 * (length - characters)).otherwise(0)
    entries = pl.col("partitionValues").map
    names = entries.keys().list.join("").str.len_bytes() + 6 * entries.len()
    values = entries.values().list.join("", ignore_nulls=True).str.len_bytes()
    path = pl.col("encoded").str.len_bytes()
    weight = (
        pl.sum_horizontal(part.cast(pl.Int64) for part in (stats, 6 * (names + values), path)) + _LINE_BYTES
    )
    total = rows.select(weight.cum_sum()).to_series()
    return max(int((total <= MAX_BYTES).sum()), 1)


def _limited(rows: pl.DataFrame, limit: int) -> tuple[pl.DataFrame, int]:
    """Return the rows that it takes to reach the limit, and what is left of it after them."""
    limit = min(limit, _MAX_LIMIT)
    records = rows["stats"].str.json_path_match("$.numRecords").cast(pl.Int64, strict=False)
    total = records.fill_null(0).clip(0, limit).cum_sum()
    needed = int((total < limit).sum()) + 1
    return rows.head(needed), limit - int(total[min(needed, rows.height) - 1])


def _render(rows: pl.DataFrame, line: LineFormat) -> FilePage:
    ids = pl.Series([line.file_id(path.encode()) for path in rows["path"]], dtype=pl.String)
    bodies = _to_ascii(_bodies(rows))
    lines = pl.select(
        pl.concat_str(pl.lit(_HEAD + _ID), ids, pl.lit('",'), bodies, pl.lit(_ending(line)))
    ).to_series()
    ends = lines.str.len_bytes().cast(pl.Int64).cum_sum()
    urls, expirations = ends.shift(1, fill_value=0) + len(_HEAD), ends - len(_TAIL)
    return FilePage(
        lines=lines.str.join("").item().encode(),
        holes=pl.select(pl.concat_list(urls, expirations).explode()).to_series().to_list(),
        hole_kinds=_KINDS * rows.height,
        groups=[PathGroup(paths=rows["encoded"].str.join("\n").item().encode())],
        files=rows.height,
        file_bytes=int(rows["size"].sum()),
    )


def _ending(line: LineFormat) -> str:
    version = "" if line.version is None else f',"version":{line.version}'
    timestamp = "" if line.timestamp is None else f',"timestamp":{line.timestamp}'
    return version + timestamp + _EXPIRATION + _TAIL


def _bodies(rows: pl.DataFrame) -> pl.Series:
    """Return what the log says of each file, as the members of a JSON object without its braces."""
    # In this format an empty value stands for null.
    entry = pl.struct(pl.element().struct.field("key"), pl.element().struct.field("value").fill_null(""))
    values = pl.col("partitionValues").cast(_ENTRIES).list.eval(entry).cast(pl.Map(pl.String, pl.String))
    known = pl.col("stats").str.len_bytes() <= MAX_STATS_BYTES
    with_stats = pl.struct(values, "size", "stats").struct.json_encode()
    without = pl.struct(values, "size").struct.json_encode()
    body = pl.when(known).then(with_stats).otherwise(without)
    return rows.select(body.str.strip_prefix("{").str.strip_suffix("}")).to_series()


def _to_ascii(texts: pl.Series) -> pl.Series:
    """Return JSON with what is not ASCII escaped: clients split lines at separators of all scripts."""
    odd = (texts.str.len_bytes() != texts.str.len_chars()).arg_true()
    if odd.is_empty():
        return texts
    return texts.scatter(odd, [_NOT_ASCII.sub(_escaped, text) for text in texts.gather(odd)])


def _escaped(match: re.Match[str]) -> str:
    return encode_basestring_ascii(match.group())[1:-1]
