"""What an index says of itself: which log it is of, up to which version, and what it is made up of."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from gateway.domain.index import FORMAT, MANIFEST, to_ms
from gateway.domain.state_key import is_state_key
from gateway.domain.window import EPOCH
from gateway.errors import GatewayError
from gateway.ports import LogFile
from gateway.services.snapshot.index.fault import IndexFault, corrupt
from gateway.services.snapshot.log.actions import read_commits
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.protocol import Protocol

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A file of an index, by its key below the table's, and what its content must be."""

    key: str
    size: int
    sha256: str

    def check(self, content: bytes) -> None:
        """Raise ``IndexFault`` when content is not what was written."""
        if len(content) != self.size or hashlib.sha256(content).hexdigest() != self.sha256:
            raise corrupt(f"{self.key} is not what was written")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedColumn:
    """A column of the table whose bounds an index has by type; its number is its place among them."""

    # The names by which the log knows it.
    path: tuple[str, ...]
    # As the table's schema has it.
    type: str
    partition: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """Which index of a table is in force."""

    name: str
    version: int
    num_files: int
    manifest: Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    name: str
    # A digest of the table's location.
    location: str
    version: int
    # The file that stood for the version in the log's listing.
    anchor: LogFile
    protocol: Protocol
    metadata: Metadata
    num_files: int
    # The bytes of the live files, as the log states them.
    size: int
    # How many of them have a deletion vector.
    vectors: int
    columns: tuple[TypedColumn, ...]
    zones: Stored


def read_pointer(content: bytes) -> Pointer:
    """Return what a pointer says; raise ``IndexFault`` for what is none."""
    found = _Reading(_object(content))
    found.require_format()
    name = found.word("name")
    return Pointer(
        name=name,
        version=found.count("version"),
        num_files=found.count("num_files"),
        manifest=found.stored("manifest", f"{name}/{MANIFEST}"),
    )


def read_manifest(name: str, content: bytes) -> Manifest:
    found = _Reading(_object(content))
    found.require_format()
    protocol, metadata = _table_of(found)
    anchor = found.inner("anchor")
    zones = found.inner("zones")
    return Manifest(
        name=name,
        location=found.text("location"),
        version=found.count("version"),
        anchor=LogFile(anchor.text("name"), anchor.count("size"), _time(anchor.count("modified_at_ms"))),
        protocol=protocol,
        metadata=metadata,
        num_files=found.count("num_files"),
        size=found.count("size"),
        vectors=found.count("vectors"),
        columns=tuple(_column(each) for each in found.items("columns")),
        zones=found.stored("zones", zones.word("key")),
    )


def is_anchor(stated: LogFile, listed: LogFile | None) -> bool:
    """Tell whether a file of a listing is the one that an index was made by, to the millisecond."""
    if listed is None or (listed.name, listed.size) != (stated.name, stated.size):
        return False
    return to_ms(listed.modified_at) == to_ms(stated.modified_at)


def _time(ms: int) -> datetime:
    try:
        return EPOCH + timedelta(milliseconds=ms)
    except OverflowError as exc:
        raise corrupt("its anchor has no time") from exc


def _table_of(found: _Reading) -> tuple[Protocol, Metadata]:
    # As a commit has them, and so read by what reads commits.
    lines = [json.dumps({action: found.inner(action).fields}) for action in ("protocol", "metaData")]
    try:
        actions = read_commits([(MANIFEST, "\n".join(lines).encode())])
    except GatewayError as exc:
        raise corrupt(f"its manifest describes no table: {exc}") from exc
    if actions.protocol is None or actions.metadata is None:
        raise corrupt("its manifest describes no table")
    return actions.protocol, actions.metadata


def _column(fields: object) -> TypedColumn:
    found = _Reading(fields)
    path = found.items("path")
    if not path or not all(isinstance(name, str) for name in path):
        raise corrupt("its manifest names a column by nothing")
    return TypedColumn(
        path=tuple(map(str, path)), type=found.text("type"), partition=found.fields.get("partition") is True
    )


def _object(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as exc:
        raise corrupt("its description is not JSON") from exc
    return _Reading(found).fields


class _Reading:
    """The members of an object; whoever asks for one that it has not, or of another type, is told."""

    def __init__(self, fields: object) -> None:
        if not isinstance(fields, dict):
            raise corrupt("its description is not an object")
        self.fields: dict[str, Any] = fields

    def require_format(self) -> None:
        if self.fields.get("format") != FORMAT:
            raise corrupt("it is in a format that is not known here")

    def text(self, name: str) -> str:
        value = self.fields.get(name)
        if not isinstance(value, str):
            raise self._lacks(name)
        return value

    def word(self, name: str) -> str:
        value = self.text(name)
        if not is_state_key(value):
            raise self._lacks(name)
        return value

    def count(self, name: str) -> int:
        value = self.fields.get(name)
        if type(value) is not int or value < 0:
            raise self._lacks(name)
        return value

    def inner(self, name: str) -> _Reading:
        return _Reading(self.fields.get(name))

    def items(self, name: str) -> list[Any]:
        value = self.fields.get(name)
        if not isinstance(value, list):
            raise self._lacks(name)
        return value

    def stored(self, name: str, key: str) -> Stored:
        found = self.inner(name)
        digest = found.text("sha256")
        if not _DIGEST.fullmatch(digest):
            raise self._lacks(name)
        return Stored(key=key, size=found.count("size"), sha256=digest)

    def _lacks(self, name: str) -> IndexFault:
        return corrupt(f"its description has no sound {name}")
