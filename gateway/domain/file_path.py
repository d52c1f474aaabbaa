"""Paths of files below a table, and the one spelling in which they are signed.

Everything but letters, digits, ``-._~`` and the slash is percent-encoded. Clients may send another spelling
of the same path: some undo escapes that a path does not need. What is verified is the path that it names.
"""

from __future__ import annotations

import re
import string
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from gateway.errors import InvalidArgument

_ORDINARY: Final = (string.ascii_letters + string.digits + "-._~/%\n").encode()
# Escapes in lower case, of characters that need none, of control characters, slash and backslash.
_STRANGE_ESCAPE: Final = re.compile(r"%(?!2[0-9A-C]|3[A-F]|40|5[BDE]|60|7[BCD]|[89A-F][0-9A-F])")
_MALFORMED_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
# Some stores and clients end a name at a control character, or take a backslash for a slash.
_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f\\]")


def encode_path(path: str) -> str:
    """Return the spelling in which a relative path is signed."""
    return quote(path, safe="/")


def decode_path(text: str) -> str:
    """Return the relative path that a spelling names; refuse what is ambiguous or leaves the directory."""
    if _MALFORMED_ESCAPE.search(text):
        raise InvalidArgument("a file's path has a malformed escape")
    try:
        path = unquote_to_bytes(text).decode()
    except UnicodeError as exc:
        raise InvalidArgument("a file's path is not UTF-8") from exc
    if path.count("/") != text.count("/") or _UNSAFE.search(path) or _has_dot_segment(path):
        raise InvalidArgument("a path does not plainly name a file below its directory")
    return path


def split_paths(joined: str) -> list[str]:
    """Return newline-joined paths; refuse them unless each is spelled as ``encode_path`` spells it."""
    paths = joined.split("\n")
    if not _is_canonical(joined):
        for path in paths:
            if encode_path(decode_path(path)) != path:
                raise InvalidArgument(f"the path {path!r} is not spelled {encode_path(decode_path(path))!r}")
    return paths


def _is_canonical(joined: str) -> bool:
    # A few passes over a whole page: path by path it would cost more than signing them.
    if joined.encode(errors="replace").translate(None, _ORDINARY) or _has_dot_segment(
        joined.replace("\n", "/\n/")
    ):
        return False
    if "%" not in joined:
        return True
    return not _STRANGE_ESCAPE.search(joined) and _is_utf8(unquote_to_bytes(joined))


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeError:
        return False
    return True


def _has_dot_segment(path: str) -> bool:
    framed = f"/{path}/"
    return "//" in framed or "/./" in framed or "/../" in framed
