"""Conditional requests: what a client already has, by a file's tag or the time of its last change."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

from aiohttp import hdrs
from multidict import CIMultiDictProxy

Headers = CIMultiDictProxy[str]


def http_date(moment: datetime) -> str:
    return format_datetime(moment, usegmt=True)


def is_other(headers: Headers, etag: str) -> bool:
    """Tell whether If-Match asks for another version of the file."""
    tags = _tags(headers, hdrs.IF_MATCH)
    return bool(tags) and tags.isdisjoint({"*", etag})


def is_known(headers: Headers, etag: str, modified_at: datetime) -> bool:
    """Tell whether the client has this version: by If-None-Match or, without that, If-Modified-Since."""
    if hdrs.IF_NONE_MATCH in headers:
        tags = {tag.removeprefix("W/") for tag in _tags(headers, hdrs.IF_NONE_MATCH)}
        return not tags.isdisjoint({"*", etag})
    since = _find_date(headers.get(hdrs.IF_MODIFIED_SINCE, ""))
    return since is not None and modified_at <= since


def allows_range(headers: Headers, etag: str, modified_at: datetime) -> bool:
    """Tell whether a range may be served: not if it is to complete what If-Range says is another version."""
    validator = headers.get(hdrs.IF_RANGE, etag).strip()
    return validator in {etag, http_date(modified_at)}


def _tags(headers: Headers, name: str) -> set[str]:
    return {tag.strip() for value in headers.getall(name, ()) for tag in value.split(",")}


def _find_date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
