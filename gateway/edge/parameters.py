"""Path and query parameters: known ones are checked, unknown ones are ignored."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from multidict import CIMultiDictProxy, MultiMapping

from gateway.errors import InvalidArgument, NotFound
from gateway.v1 import snapshot_pb2

FILE_ID_HASH: Final = "fileidhash"

_MAX_INT32: Final = 2**31 - 1
_MAX_INT64: Final = 2**63 - 1
_FLAGS: Final = {"true": True, "false": False}
_DIGITS: Final = re.compile(r"[0-9]{1,19}")
_FILE_ID_HASHES: Final = {
    "parquet": snapshot_pb2.FILE_ID_HASH_PARQUET,
    "delta": snapshot_pb2.FILE_ID_HASH_DELTA,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Which part of a list is asked for."""

    max_results: int | None = None
    page_token: str = ""


def page_of(query: MultiMapping[str]) -> Page:
    return Page(
        max_results=_number(query, "maxResults", _MAX_INT32), page_token=_single(query, "pageToken") or ""
    )


def starting_timestamp_of(query: MultiMapping[str]) -> str:
    return _timestamp(query, "startingTimestamp") or ""


def location_of(query: MultiMapping[str]) -> str | None:
    return _single(query, "location")


def table_at_of(query: MultiMapping[str]) -> snapshot_pb2.TableAt:
    return table_at(_number(query, "version", _MAX_INT64), _timestamp(query, "timestamp"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesQuery:
    """Which changes are asked for, and what is to stand among them."""

    start: snapshot_pb2.TableAt
    end: snapshot_pb2.TableAt
    include_historical_metadata: bool
    include_historical_protocol: bool
    max_files: int | None
    page_token: str


def changes_of(query: MultiMapping[str]) -> ChangesQuery:
    start = _range_end(query, "starting")
    if start.WhichOneof("at") is None:
        raise InvalidArgument("No startingVersion or startingTimestamp is given; changes need one of them")
    return ChangesQuery(
        start=start,
        end=_range_end(query, "ending"),
        include_historical_metadata=_flag(query, "includeHistoricalMetadata"),
        include_historical_protocol=_flag(query, "includeHistoricalProtocol"),
        max_files=_number(query, "maxFiles", _MAX_INT32, minimum=1),
        page_token=_single(query, "pageToken") or "",
    )


def table_at(version: int | None, timestamp: str | None, prefix: str = "") -> snapshot_pb2.TableAt:
    """Return a point in a table's history; neither: the latest version."""
    if version is not None and timestamp is not None:
        names = (f"{prefix}Version, {prefix}Timestamp") if prefix else "version, timestamp"
        raise InvalidArgument(f"Please only provide one of: {names}")
    if version is not None:
        return snapshot_pb2.TableAt(version=version)
    return snapshot_pb2.TableAt() if timestamp is None else snapshot_pb2.TableAt(timestamp=timestamp)


def file_id_hash_of(headers: CIMultiDictProxy[str]) -> tuple[snapshot_pb2.FileIdHash.ValueType, str]:
    """Return how ids are to be made, and the word to echo; empty when the client did not ask."""
    values = headers.getall(FILE_ID_HASH, ())
    if not values:
        return snapshot_pb2.FILE_ID_HASH_UNSPECIFIED, ""
    word = values[0].strip().lower()
    if len(values) > 1 or word not in _FILE_ID_HASHES:
        raise InvalidArgument(f"the header {FILE_ID_HASH} must be one of {', '.join(_FILE_ID_HASHES)}")
    return _FILE_ID_HASHES[word], word


def name_of(match_info: MultiMapping[str] | dict[str, str], kind: str) -> str:
    """Return the name of a share, schema or table in the path; whether it exists is the catalog's to say."""
    name = match_info.get(kind, "")
    if not _is_text(name):
        raise NotFound(f"{kind} not found")
    return name


def _range_end(query: MultiMapping[str], prefix: str) -> snapshot_pb2.TableAt:
    version = _number(query, f"{prefix}Version", _MAX_INT64)
    return table_at(version, _timestamp(query, f"{prefix}Timestamp"), prefix)


def _number(query: MultiMapping[str], name: str, maximum: int, *, minimum: int = 0) -> int | None:
    text = _single(query, name)
    if text is None:
        return None
    if not _DIGITS.fullmatch(text) or not minimum <= int(text) <= maximum:
        raise InvalidArgument(f"{name} must be a whole number from {minimum} to {maximum}")
    return int(text)


def _flag(query: MultiMapping[str], name: str) -> bool:
    text = _single(query, name)
    # In any case: the Python client writes its own True.
    if text is not None and text.lower() not in _FLAGS:
        raise InvalidArgument(f"{name} must be true or false")
    return text is not None and _FLAGS[text.lower()]


def _timestamp(query: MultiMapping[str], name: str) -> str | None:
    text = _single(query, name)
    if text == "":
        raise InvalidArgument(f"{name} must be a timestamp such as 2022-01-01T00:00:00Z")
    return text


def _single(query: MultiMapping[str], name: str) -> str | None:
    values = query.getall(name, ())
    if len(values) > 1:
        raise InvalidArgument(f"{name} must be given only once")
    if not values:
        return None
    if not _is_text(values[0]):
        raise InvalidArgument(f"{name} is not valid UTF-8")
    return values[0]


def _is_text(value: str) -> bool:
    """Tell whether a value was UTF-8 on the wire: other bytes arrive as lone surrogates."""
    return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)
