"""Paths of files below a table, and the one spelling in which they are signed.

Everything but letters, digits, ``-._~`` and the slash is percent-encoded. Clients may send another spelling
of the same path: some undo escapes that a path does not need. What is verified is the path that it names.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import quote, unquote_to_bytes

from gateway.errors import InvalidArgument

_ORDINARY: Final = (string.ascii_letters + string.digits + "-._~/%\n").encode()
# Escapes in lower case, of characters that need none, of control characters, slash and backslash.
_STRANGE_ESCAPE: Final = re.compile(rb"%(?!2[0-9A-C]|3[A-F]|40|5[BDE]|60|7[BCD]|[89A-F][0-9A-F])")
_MALFORMED_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
# Some stores and clients end a name at a control character, or take a backslash for a slash.
_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f\\]")


@dataclass(frozen=True, slots=True)
class Paths:
    """Files below one location, each spelled as ``encode_path`` spells it."""

    # Joined by newlines, as they travel and as they are known by; empty for none.
    joined: bytes
    # Whether the same ones are asked for together time and again, and so worth being remembered together.
    is_segment: bool = False

    @classmethod
    def of(cls, paths: Iterable[str]) -> Self:
        """Return paths that are spelled so already."""
        return cls("\n".join(paths).encode())

    def __len__(self) -> int:
        return self.joined.count(b"\n") + 1 if self.joined else 0

    def split(self) -> list[bytes]:
        return self.joined.split(b"\n") if self.joined else []


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


def parse_paths(joined: bytes, *, is_segment: bool = False) -> Paths:
    """Return newline-joined paths; refuse them unless each is spelled as ``encode_path`` spells it."""
    if joined and not _is_canonical(joined):
        for path in _ascii(joined).split("\n"):
            if encode_path(decode_path(path)) != path:
                raise InvalidArgument(f"the path {path!r} is not spelled {encode_path(decode_path(path))!r}")
    return Paths(joined, is_segment)


def _ascii(joined: bytes) -> str:
    try:
        return joined.decode("ascii")
    except UnicodeDecodeError as exc:
        raise InvalidArgument("paths must be percent-encoded ASCII") from exc


def _is_canonical(joined: bytes) -> bool:
    # A few passes over a whole page: path by path it would cost more than signing them.
    if joined.translate(None, _ORDINARY) or _has_dot_segment(joined.replace(b"\n", b"/\n/").decode()):
        return False
    if b"%" not in joined:
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
