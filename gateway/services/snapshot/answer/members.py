"""Rows as text: the members of JSON objects, without those that are null, in ASCII."""

from __future__ import annotations

import re
from collections.abc import Sequence
from json.encoder import encode_basestring_ascii
from typing import Final

import polars as pl

_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")


def render_members(rows: pl.DataFrame, required: Sequence[str], optional: Sequence[str]) -> pl.Series:
    """Return for each row an object without its opening brace; optional members are left out where null."""
    nulls = {name: rows[name].null_count() for name in optional}
    whole = [*required, *(name for name in optional if nulls[name] == 0)]
    # A column with a few nulls is written by itself: one struct for each pattern of nulls costs twice that.
    parts = [_part(name) for name in optional if 0 < nulls[name] < rows.height]
    members = pl.struct(whole).struct.json_encode().str.strip_prefix("{")
    return rows.select(pl.concat_str(*parts, members)).to_series()


def to_ascii(texts: pl.Series) -> pl.Series:
    """Return JSON with what is not ASCII escaped: clients split lines at separators of all scripts."""
    odd = (texts.str.len_bytes() != texts.str.len_chars()).arg_true()
    if odd.is_empty():
        return texts
    return texts.clone().scatter(odd, [_NOT_ASCII.sub(_escaped, text) for text in texts.gather(odd)])


def _part(name: str) -> pl.Expr:
    member = pl.struct(name).struct.json_encode().str.strip_prefix("{").str.strip_suffix("}")
    return pl.when(pl.col(name).is_not_null()).then(pl.concat_str(member, pl.lit(","))).otherwise(pl.lit(""))


def _escaped(match: re.Match[str]) -> str:
    return encode_basestring_ascii(match.group())[1:-1]
