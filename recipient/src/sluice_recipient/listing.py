"""The files of one version of a table, each with a URL, as the gateway answers a query."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
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
    if any(page.version != first.version for page in pages):
        raise Unavailable("the gateway's pages are of different versions; try again")
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
    said = _capabilities(headers.get("delta-sharing-capabilities", ""))
    if said.get(_FORMAT, "parquet") != "parquet":
        raise NeedsDeltaFormat(
            "the table has deletion vectors or mapped columns, which its files do not tell"
        )
    try:
        page = _page(int(headers["delta-table-version"]), body, has_end=said.get(_END) == "true")
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
        # Without the cause: it may quote a URL.
        raise Unavailable(
            "the gateway's answer is no list of files; is the endpoint the right one?"
        ) from None
    _check_urls(page.urls.values(), ("https://", "http://") if allows_http else ("https://",))
    return page


def _page(version: int, body: bytes, *, has_end: bool) -> Page:
    by_kind: dict[str, list[Any]] = {}
    for line in body.splitlines():
        for kind, content in json.loads(line).items():
            by_kind.setdefault(kind, []).append(content)
    end = _end(by_kind.get("endStreamAction", []), is_announced=has_end)
    files = by_kind.get("file", [])
    times = [file["expirationTimestamp"] for file in files if file.get("expirationTimestamp")]
    earliest = min(times, default=end.get("minUrlExpirationTimestamp"))
    return Page(
        version=version,
        schema=str(by_kind["metaData"][0]["schemaString"]),
        files=[_file(file) for file in files],
        urls={str(file["id"]): str(file["url"]) for file in files},
        expires_at=None if earliest is None else datetime.fromtimestamp(int(earliest) / 1000, UTC),
        refresh_token=end.get("refreshToken"),
        next_page_token=end.get("nextPageToken"),
    )


def _check_urls(urls: Iterable[str], schemes: tuple[str, ...]) -> None:
    if not all(url.lower().startswith(schemes) for url in urls):
        # Without the URL: it may open a file.
        raise Refused(
            f"the gateway names a file by a URL that is not {' or '.join(schemes)}; ask the provider"
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


def _capabilities(text: str) -> dict[str, str]:
    parts = (part.partition("=") for part in text.lower().split(";"))
    return {name.strip(): value.strip() for name, _, value in parts}
