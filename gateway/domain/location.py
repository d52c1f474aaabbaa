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
# Hadoop spells local files with a single slash.
_FILE_URI: Final = re.compile(r"file:(?P<path>/(?!/).*)", re.DOTALL | re.IGNORECASE)
# C0, DEL, C1, separators that break lines, and lone surrogates: no store needs them, several mangle them.
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# Read by one layer as text and by the next as a separator, a dot segment or a control character, however
# often the percent sign was itself encoded; and the overlong spellings that lenient decoders accept.
_ENCODED: Final = re.compile(
    r"%(?:25)*(?:2e|2f|5c|[01][0-9a-f]|7f|c0%(?:25)*a[ef]|c1%(?:25)*9c)", re.IGNORECASE
)
_BUCKET: Final = re.compile(r"[a-z0-9](?:[a-z0-9_.-]*[a-z0-9])?")
_CONTAINER: Final = re.compile(r"(?P<container>\$?[A-Za-z0-9_-]+)@(?P<host>[A-Za-z0-9.-]+)")


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

    @property
    def root(self) -> Location:
        """Return the bucket, container or file system that this lies in."""
        text = self._head
        return self._at("", text.removesuffix("/") if self.authority else text)

    @property
    def parent(self) -> Location:
        """Return the directory above; the root has none above itself."""
        path = self.path.rpartition("/")[0]
        return self._at(path, f"{self._head}{path}") if path else self.root

    def child(self, name: str) -> Location:
        """Return the directory of that name in this one; raise ``InvalidArgument`` for what names none."""
        if not name or "/" in name:
            raise InvalidArgument(f"the name of a directory is not empty and has no slash: {name!r}")
        # Only the text of a local root ends with its slash.
        return parse_location(f"{self.text}{name}" if self.text.endswith("/") else f"{self.text}/{name}")

    @property
    def _head(self) -> str:
        """Return what stands before the path, which is kept as it was given."""
        return self.text[: len(self.text) - len(self.path)]

    def _at(self, path: str, text: str) -> Location:
        return Location(scheme=self.scheme, authority=self.authority, path=path, text=text)

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
    if found := _ENCODED.search(text):
        raise InvalidArgument(f"a location must not contain {found.group()}: {text!r}")
    if "\\" in text:
        raise InvalidArgument(f"a location must not contain a backslash: {text!r}")
    scheme, authority, path = _split(text)
    checked = _checked_path(path, text)
    # The slash of the local root is all its path: without it, the text would not be a location any more.
    kept = text.removesuffix("/") if checked or authority else text
    return Location(scheme=scheme, authority=authority, path=checked, text=kept)


def _split(text: str) -> tuple[str, str, str]:
    if text.startswith("/"):
        return "file", "", text
    if match := _FILE_URI.fullmatch(text):
        return "file", "", match["path"]
    match = _URI.fullmatch(text)
    if match is None:
        raise InvalidArgument(f"a location is a URI or an absolute path, not {text!r}")
    scheme = _SCHEMES.get(match["scheme"].lower())
    if scheme is None:
        raise InvalidArgument(
            f"the scheme {match['scheme']!r} is not supported; use one of {', '.join(_SCHEMES)}"
        )
    authority, path = _folded_authority(scheme, match["authority"]), match["path"] or ""
    if authority is None:
        raise InvalidArgument(f"the host, bucket or container of {text!r} is not valid")
    if scheme == "file" and not path:
        raise InvalidArgument(f"a file location has an absolute path: {text!r}")
    return scheme, authority, path


def _folded_authority(scheme: str, authority: str) -> str | None:
    """Return the one spelling of an authority, or None if it is not one."""
    if scheme == "file":
        return "" if authority.lower() in {"", "localhost"} else None
    if scheme != "abfss":
        # As it is: where a store has old buckets with capitals, one without them is another bucket.
        return authority if _BUCKET.fullmatch(authority) and ".." not in authority else None
    match = _CONTAINER.fullmatch(authority.lower())
    # An empty label: a host name with a dot at its end is an alias of the one without.
    if match is None or not all(match["host"].split(".")):
        return None
    # A container is the same through the blob and the dfs endpoint of its account.
    return f"{match['container']}@{match['host'].replace('.blob.', '.dfs.', 1)}"


def _checked_path(path: str, text: str) -> str:
    if path in {"", "/"}:
        return ""
    path = path.removeprefix("/").removesuffix("/")
    for segment in path.split("/"):
        if not segment.strip():
            raise InvalidArgument(f"a location must not contain empty or blank segments: {text!r}")
        # Besides the dot segments: some stores drop dots from a name's end.
        if segment.endswith("."):
            raise InvalidArgument(f"a location must not contain a segment that ends with a dot: {text!r}")
    return path
