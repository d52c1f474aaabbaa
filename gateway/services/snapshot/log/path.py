"""Paths of files in a log: URIs relative to the table, turned into one canonical spelling.

A path that another reader could take for another file, or that leaves the table, is refused.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from gateway.domain import file_path
from gateway.errors import GatewayError, InvalidArgument, Unsupported

# What an absolute URI begins with, up to its colon.
SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.-]*"

# Legal in a path as they are, and escaped in the canonical spelling.
_SUB_DELIMITERS: Final = "!$&'()*+,;=@"
_ESCAPES: Final = {char: f"%{ord(char):02X}" for char in _SUB_DELIMITERS}
# Characters that need no look at the rest of the path: no colon, which may end a scheme, and of the
# escapes only those of printable ASCII that are spelled canonically and do not hide a separator.
_PLAIN: Final = r"^(?:[A-Za-z0-9._~/!$&'()*+,;=@-]|%(?:2[0-9A-C]|3[A-F]|40|5[BDE]|60|7[BCD]))+$"
_BLANK_OR_DOTS: Final = r"(?:^|/)\.{0,2}(?:/|$)"
# What most tables have nothing but: plain in every segment, and the equals sign alone to be escaped.
_CHARACTER: Final = r"(?:[A-Za-z0-9_~=-]|%(?:2[0-9A-C]|3[A-F]|40))"
_SEGMENT: Final = rf"(?:\.{{0,2}}{_CHARACTER}|\.{{3,}})(?:\.|{_CHARACTER})*"
_COMMON: Final = f"^{_SEGMENT}(?:/{_SEGMENT})*$"
_COMMON_LINES: Final = re.compile(r"[A-Za-z0-9_~=./\n-]+")
# Up to so many an expression takes longer to prepare than this to run.
_FEW: Final = 256

_ABSOLUTE: Final = re.compile(rf"/|{SCHEME}:")
# Readers differ on whether these belong to a path.
_QUERY_OR_FRAGMENT: Final = re.compile(r"[?#]")


def encode_paths(paths: pl.Series) -> pl.Series:
    """Return the canonical spelling of each path; null where ``encode_path`` refuses it."""
    if paths.len() <= _FEW and not paths.has_nulls():
        few = _encode_common("\n".join(paths))
        if few is not None and len(few) == paths.len():
            return pl.Series(paths.name, few)
    if paths.str.contains(_COMMON).all():
        # In half of the time, which is a good part of what it takes to read a checkpoint.
        return paths.str.replace_all("=", _ESCAPES["="], literal=True)
    plain = paths.str.contains(_PLAIN) & ~paths.str.contains(_BLANK_OR_DOTS)
    encoded = paths.str.replace_many(list(_ESCAPES), list(_ESCAPES.values()))
    if plain.all():
        return encoded
    odd = (~plain).arg_true()
    return encoded.scatter(odd, pl.Series([_find(path) for path in paths.gather(odd)], dtype=pl.String))


def encode_path(path: str) -> str:
    """Return a path percent-encoded but for unreserved characters and slashes; raise what makes it unfit."""
    if _ABSOLUTE.match(path):
        raise Unsupported("the log names a file by an absolute path")
    if _QUERY_OR_FRAGMENT.search(path):
        raise Unsupported("the log names a file by a path that is not a plain relative URI")
    try:
        return file_path.encode_path(file_path.decode_path(path))
    except InvalidArgument as exc:
        raise Unsupported(f"the log names a file in a way that is not safe to follow: {exc}") from exc


def _encode_common(joined: str) -> list[str] | None:
    """Return lines in their canonical spelling; None unless all are such as most tables have."""
    framed = f"/{joined}/".replace("\n", "/\n/")
    odd = any(segment in framed for segment in ("//", "/./", "/../"))
    if odd or not _COMMON_LINES.fullmatch(joined):
        return None
    return joined.replace("=", _ESCAPES["="]).split("\n")


def _find(path: str) -> str | None:
    try:
        return encode_path(path)
    except GatewayError:
        return None
