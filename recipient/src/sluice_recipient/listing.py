"""The files of one version of a table, each with a URL, as the gateway answers a query."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sluice_recipient.errors import NotUsable, Refused, Unavailable

# Of a server that does not tell when its URLs expire.
_USUAL_LIFE: Final = timedelta(hours=1)
_CUT_SHORT: Final = "the gateway's answer was cut short; try again later"
_FORMAT: Final = "responseformat"
_END: Final = "includeendstreamaction"


class NeedsDeltaFormat(NotUsable):
    """A table with rows or columns that a list of Parquet files does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFile:
    """A Parquet file of a table; it lacks the columns that the table is partitioned by."""

    id: str
    size: int
    # As text, by column.
    partition_values: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One answer of several."""

    version: int
    # The table's schema in Delta's own JSON.
    schema: str
    files: Sequence[SharedFile]
    # By the files' ids. Whoever has one can read the file.
    urls: Mapping[str, str] = field(repr=False)
    # None where nothing is told, or where there are no files.
    expires_at: datetime | None = None
    refresh_token: str | None = field(default=None, repr=False)
    next_page_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All files of a version, with URLs that are good until ``expires_at``."""

    version: int
    schema: str
    files: tuple[SharedFile, ...]
    urls: Mapping[str, str] = field(repr=False)
    expires_at: datetime
    refresh_token: str | None = field(default=None, repr=False)


def join_pages(pages: Sequence[Page], now: datetime) -> Listing:
    """Return the pages of one query as one listing."""
    first = pages[0]
    check_versions(page.version for page in pages)
    told = [page.expires_at for page in pages if page.expires_at is not None]
    return Listing(
        version=first.version,
        schema=first.schema,
        files=tuple(file for page in pages for file in page.files),
        urls={id_: url for page in pages for id_, url in page.urls.items()},
        expires_at=min(told, default=now + _USUAL_LIFE),
        refresh_token=first.refresh_token,
    )


def parse_page(headers: Mapping[str, str], body: bytes, *, allows_http: bool = False) -> Page:
    """Return what an answer says; raise ``NeedsDeltaFormat`` when it is in the other format.

    URLs are https, or else http if that is allowed: no others are ever opened.
    """
    if format_of(headers) != "parquet":
        raise NeedsDeltaFormat(
            "the table has deletion vectors or mapped columns, which its files do not tell"
        )
    with expecting_files():
        page = _page(headers, body)
    check_urls(page.urls.values(), allows_http=allows_http)
    return page


def format_of(headers: Mapping[str, str]) -> str:
    """Return the format that an answer is in."""
    return _capabilities(headers).get(_FORMAT, "parquet")


@contextmanager
def expecting_files() -> Iterator[None]:
    """Raise ``Unavailable`` when what is taken apart in the block is not what it should be."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
        # Without the cause: it may quote a URL.
        raise Unavailable(
            "the gateway's answer is no list of files; is the endpoint the right one?"
        ) from None


def parse_lines(headers: Mapping[str, str], body: bytes) -> tuple[dict[str, list[Any]], Mapping[str, Any]]:
    """Return what stands in the lines of an answer by its kind, and what stands in the last one."""
    by_kind: dict[str, list[Any]] = {}
    for line in body.splitlines():
        for kind, content in json.loads(line).items():
            by_kind.setdefault(kind, []).append(content)
    is_announced = _capabilities(headers).get(_END) == "true"
    return by_kind, _end(by_kind.get("endStreamAction", []), is_announced=is_announced)


def check_urls(urls: Iterable[str], *, allows_http: bool) -> None:
    """Raise ``Refused`` when one of them is not https, or else http if that is allowed."""
    schemes = ("https://", "http://") if allows_http else ("https://",)
    if not all(url.lower().startswith(schemes) for url in urls):
        # Without the URL: it may open a file.
        raise Refused(
            f"the gateway names a file by a URL that is not {' or '.join(schemes)}; ask the provider"
        )


def check_versions(versions: Iterable[int]) -> None:
    """Raise ``Unavailable`` when pages of one query are of several versions."""
    if len(set(versions)) != 1:
        raise Unavailable("the gateway's pages are of different versions; try again")


def _page(headers: Mapping[str, str], body: bytes) -> Page:
    by_kind, end = parse_lines(headers, body)
    files = by_kind.get("file", [])
    times = [file["expirationTimestamp"] for file in files if file.get("expirationTimestamp")]
    earliest = min(times, default=end.get("minUrlExpirationTimestamp"))
    return Page(
        version=int(headers["delta-table-version"]),
        schema=str(by_kind["metaData"][0]["schemaString"]),
        files=[_file(file) for file in files],
        urls={str(file["id"]): str(file["url"]) for file in files},
        expires_at=None if earliest is None else datetime.fromtimestamp(int(earliest) / 1000, UTC),
        refresh_token=end.get("refreshToken"),
        next_page_token=end.get("nextPageToken"),
    )


def _file(content: Mapping[str, Any]) -> SharedFile:
    values = {str(name): value for name, value in (content.get("partitionValues") or {}).items()}
    return SharedFile(id=str(content["id"]), size=int(content["size"]), partition_values=values)


def _end(found: Sequence[Mapping[str, Any]], *, is_announced: bool) -> Mapping[str, Any]:
    if not found:
        if is_announced:
            raise Unavailable(_CUT_SHORT)
        return {}
    if found[-1].get("errorMessage"):
        status = found[-1].get("httpStatusErrorCode")
        # What went wrong after the answer had begun.
        error = Refused if isinstance(status, int) and status < 500 and status != 429 else Unavailable  # noqa: PLR2004
        raise error("the gateway could not finish its answer; try again later")
    return found[-1]


def _capabilities(headers: Mapping[str, str]) -> dict[str, str]:
    text = headers.get("delta-sharing-capabilities", "")
    parts = (part.partition("=") for part in text.lower().split(";"))
    return {name.strip(): value.strip() for name, _, value in parts}
