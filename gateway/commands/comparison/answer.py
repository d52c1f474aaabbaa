"""What a sharing server says of a table, in either response format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

Json = Mapping[str, Any]

# Fields of an add that have a place of their own in an entry.
_KNOWN: Final = frozenset({"path", "partitionValues", "size", "stats", "deletionVector"})
# What names the vector: an inline one is there itself, of another the file that it lies in.
_INLINE: Final = "i"


class NotTheProtocol(Exception):
    """An answer that is not what the protocol promises."""


class Format(StrEnum):
    PARQUET = "parquet"
    DELTA = "delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """A file of a table, as a server lists it."""

    id: str
    url: str = field(repr=False)
    size: int | None
    partition_values: Mapping[str, str | None]
    stats: str | None
    expires: bool
    # Without its URL; None for a file without one, as all are in parquet format.
    deletion_vector: Json | None = None
    # What else the delta format says of it.
    others: Json = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the last part of the file's path, which two servers of one table agree on."""
        return _name(self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAnswer:
    """What a metadata or query call says."""

    version: int
    protocol: Json
    metadata: Json
    files: tuple[FileEntry, ...] = ()
    format: Format = Format.PARQUET


def read_answer(version: int, heads: Json, files: Sequence[FileEntry]) -> TableAnswer:
    """Return an answer of these lines; the delta format's are taken out of their wrapping."""
    protocol, metadata = heads.get("protocol"), heads.get("metaData")
    if not isinstance(protocol, dict) or not isinstance(metadata, dict):
        raise NotTheProtocol("the answer has no protocol or no metaData line")
    wrapped = "deltaProtocol" in protocol
    return TableAnswer(
        version=version,
        protocol=_ordered(_unwrapped(protocol, "deltaProtocol") if wrapped else protocol),
        metadata=_unwrapped(metadata, "deltaMetadata") if wrapped else metadata,
        files=tuple(files),
        format=Format.DELTA if wrapped else Format.PARQUET,
    )


def read_file(value: object) -> FileEntry:
    if not isinstance(value, dict) or not isinstance(value.get("id"), str):
        raise NotTheProtocol("the answer has a file without an id")
    action = value.get("deltaSingleAction")
    if action is None:
        return _entry(value, value, value.get("url"))
    add = action.get("add") if isinstance(action, dict) else None
    if not isinstance(add, dict):
        raise NotTheProtocol("the answer has a file that is not added")
    return _entry(value, add, add.get("path"))


def _entry(file: Json, said: Json, url: object) -> FileEntry:
    if not isinstance(url, str):
        raise NotTheProtocol("the answer has a file without a url")
    values = said.get("partitionValues") or {}
    if not isinstance(values, dict):
        raise NotTheProtocol("the answer has a file whose partitionValues are not an object")
    return FileEntry(
        id=file["id"],
        url=url,
        size=said.get("size"),
        partition_values=values,
        stats=said.get("stats"),
        expires=file.get("expirationTimestamp") is not None,
        deletion_vector=_vector(said.get("deletionVector")),
        others={} if said is file else {key: value for key, value in said.items() if key not in _KNOWN},
    )


def _vector(value: object) -> Json | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise NotTheProtocol("the answer has a file whose deletionVector is not an object")
    where = value.get("pathOrInlineDv")
    if isinstance(where, str) and value.get("storageType") != _INLINE:
        where = _name(where)
    return {**value, "pathOrInlineDv": where}


def _name(url: str) -> str:
    return PurePosixPath(unquote(urlsplit(url).path)).name


def _unwrapped(outer: Json, name: str) -> Json:
    inner = outer.get(name)
    if not isinstance(inner, dict):
        raise NotTheProtocol(f"the answer has no {name}")
    return {**inner, **{key: value for key, value in outer.items() if key != name}}


def _ordered(protocol: Json) -> Json:
    """Return the protocol with its features in order: they are a set."""
    return {
        key: sorted(value, key=str) if isinstance(value, list) else value for key, value in protocol.items()
    }
