"""Paths of files in a log: URIs relative to the table, turned into one canonical spelling.

A path that another reader could take for another file, or that leaves the table, is refused.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from gateway.domain import file_path
from gateway.domain.grant import Grant
from gateway.errors import GatewayError, InvalidArgument, Unsupported

# Legal in a path as they are, and escaped in the canonical spelling.
_SUB_DELIMITERS: Final = "!$&'()*+,;=@"
_ESCAPES: Final = {char: f"%{ord(char):02X}" for char in _SUB_DELIMITERS}
# Characters that need no look at the rest of the path: no colon, which may end a scheme, and of the
# escapes only those of printable ASCII that are spelled canonically and do not hide a separator.
_PLAIN: Final = r"^(?:[A-Za-z0-9._~/!$&'()*+,;=@-]|%(?:2[0-9A-C]|3[A-F]|40|5[BDE]|60|7[BCD]))+$"
_BLANK_OR_DOTS: Final = r"(?:^|/)\.{0,2}(?:/|$)"

_SCHEME: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<authority>[^/?#]*))?")
# Readers differ on whether these belong to a path.
_QUERY_OR_FRAGMENT: Final = re.compile(r"[?#]")
_BUCKET: Final = re.compile(r"[A-Za-z0-9._-]{1,255}(?:@[a-z0-9.]+\.core\.[a-z0-9.]+)?")


def encode_paths(paths: pl.Series) -> pl.Series:
    """Return the canonical spelling of each path; null where ``encode_path`` refuses it."""
    plain = paths.str.contains(_PLAIN) & ~paths.str.contains(_BLANK_OR_DOTS)
    encoded = paths.str.replace_many(list(_ESCAPES), list(_ESCAPES.values()))
    if plain.all():
        return encoded
    odd = (~plain).arg_true()
    return encoded.scatter(odd, pl.Series([_find(path) for path in paths.gather(odd)], dtype=pl.String))


def encode_path(path: str) -> str:
    """Return a path percent-encoded but for unreserved characters and slashes; raise what makes it unfit."""
    if path.startswith("/") or _SCHEME.match(path):
        raise Unsupported("the log names a file by an absolute path")
    if _QUERY_OR_FRAGMENT.search(path):
        raise Unsupported("the log names a file by a path that is not a plain relative URI")
    try:
        return file_path.encode_path(file_path.decode_path(path))
    except InvalidArgument as exc:
        raise Unsupported(f"the log names a file in a way that is not safe to follow: {exc}") from exc


def require_servable(path: str, grant: Grant) -> None:
    """Raise why a path that has no canonical spelling is not served, without giving the path away."""
    if path.startswith("/"):
        raise Unsupported(_outside(grant, "on the same store"))
    if match := _SCHEME.match(path):
        raise Unsupported(_outside(grant, f"in {match['scheme']}://{_bucket(match['authority'] or '')}"))
    encode_path(path)


def _find(path: str) -> str | None:
    try:
        return encode_path(path)
    except GatewayError:
        return None


def _bucket(authority: str) -> str:
    # Only what can be a bucket, or a container and its account: a URI may also carry a password there.
    return authority if _BUCKET.fullmatch(authority) else ""


def _outside(grant: Grant, where: str) -> str:
    return (
        f"table {grant.table} has files outside of its directory, {where}: they take an entry of its "
        "auxiliaryLocations that covers them, and serving those by URL is not supported yet"
    )
