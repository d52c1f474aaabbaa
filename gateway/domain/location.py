"""Where a table or a storage lives: parsed once; that object is checked, signed, scoped and echoed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from gateway.errors import InvalidArgument

# Spellings of one store, by the scheme under which they are the same place.
_SCHEMES: Final = {
    "file": "file",
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "abfss": "abfss",
    "abfs": "abfss",
    "wasbs": "abfss",
    "wasb": "abfss",
    "gs": "gs",
}
_URI: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/]*)(?P<path>/.*)?", re.DOTALL
)
# C0, DEL, C1, separators that break lines, and lone surrogates: no store needs them, several mangle them.
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# Read by one layer as text and by the next as a separator or a dot segment.
_ENCODED_SEPARATOR: Final = re.compile(r"%(?:2e|2f|5c|00)", re.IGNORECASE)
_AUTHORITY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]*")


@dataclass(frozen=True, slots=True)
class Location:
    """A directory in a store. Two spellings of it are equal; ``text`` keeps the one that was given."""

    scheme: str
    authority: str
    # Without leading and trailing slash; empty for the root of a bucket, container or file system.
    path: str
    text: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Location) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __str__(self) -> str:
        return self.text

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.scheme, self.authority, self.path

    @property
    def is_root(self) -> bool:
        return not self.path

    def covers(self, other: Location) -> bool:
        """Tell whether ``other`` is this directory or lies below it."""
        if (self.scheme, self.authority) != (other.scheme, other.authority):
            return False
        return self.is_root or other.path == self.path or other.path.startswith(f"{self.path}/")

    def below(self, other: Location) -> str:
        """Return the path of ``other``, which this location covers, relative to this one."""
        if not self.covers(other):
            raise InvalidArgument(f"{other} does not lie below {self}")
        return other.path[len(self.path) :].lstrip("/")


def parse_location(text: str) -> Location:
    """Parse a URI or an absolute local path; refuse whatever could name another place to another reader."""
    if found := _UNSAFE.search(text):
        raise InvalidArgument(f"a location must not contain the character {found.group()!r}")
    if found := _ENCODED_SEPARATOR.search(text):
        raise InvalidArgument(f"a location must not contain {found.group()}: {text!r}")
    if "\\" in text:
        raise InvalidArgument(f"a location must not contain a backslash: {text!r}")
    scheme, authority, path = _split(text)
    return Location(
        scheme=scheme, authority=authority, path=_checked_path(path, text), text=text.rstrip("/") or text
    )


def _split(text: str) -> tuple[str, str, str]:
    if text.startswith("/"):
        return "file", "", text
    match = _URI.fullmatch(text)
    if match is None:
        raise InvalidArgument(f"a location is a URI or an absolute path, not {text!r}")
    scheme = _SCHEMES.get(match["scheme"].lower())
    if scheme is None:
        raise InvalidArgument(
            f"the scheme {match['scheme']!r} is not supported; use one of {', '.join(_SCHEMES)}"
        )
    authority, path = match["authority"], match["path"] or ""
    if scheme == "file":
        if authority not in {"", "localhost"}:
            raise InvalidArgument(f"a file location has no host: {text!r}")
        return scheme, "", path
    if not _AUTHORITY.fullmatch(authority) or authority.count("@") != (scheme == "abfss"):
        raise InvalidArgument(f"the bucket or container of {text!r} is not valid")
    return scheme, _folded_authority(scheme, authority), path


def _folded_authority(scheme: str, authority: str) -> str:
    # A container is the same through the blob and the dfs endpoint of its account.
    authority = authority.lower()
    return authority.replace(".blob.", ".dfs.", 1) if scheme == "abfss" else authority


def _checked_path(path: str, text: str) -> str:
    path = path.strip("/") if not path.startswith("//") else path
    segments = path.split("/") if path else []
    for segment in segments:
        if segment in {"", ".", ".."}:
            raise InvalidArgument(f"a location must not contain empty, '.' or '..' segments: {text!r}")
        if not segment.strip() or segment.rstrip(".") == "":
            raise InvalidArgument(f"a location must not contain blank or dotted segments: {text!r}")
    return path
