"""A version of a table in the delta format: the actions of its log, with URLs in place of paths."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sluice_recipient.errors import Refused
from sluice_recipient.listing import check_urls, check_versions, expecting_files, format_of, parse_lines

# By these delta-kernel, which the official client reads with, knows a URL. Of what has none of them it opens
# the path, on this machine, even where that begins with https.
_SIGNED: Final = frozenset(
    {"x-amz-signature", "sp", "x-goog-credential", "x-oss-credential", "x-databricks-signature"}
)
_BY_URL: Final = "p"
_INLINE: Final = "i"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaPage:
    """One answer of several."""

    version: int
    # Of the protocol and the metadata.
    head: Sequence[str]
    # Whoever has one can read the file.
    files: Sequence[str] = field(repr=False)
    next_page_token: str | None = field(default=None, repr=False)


def join_delta_pages(pages: Sequence[DeltaPage]) -> list[str]:
    """Return the lines of the pages of one query, as if it had been one page."""
    check_versions(page.version for page in pages)
    return [*pages[0].head, *(line for page in pages for line in page.files)]


def parse_delta_page(headers: Mapping[str, str], body: bytes, *, allows_http: bool = False) -> DeltaPage:
    """Return what an answer says, in lines that name nothing to open but signed URLs.

    They are https, or else http if that is allowed. The lines are written anew, with what was looked at only.
    """
    with expecting_files():
        if format_of(headers) != "delta":
            raise ValueError("another format than was asked for")
        version = int(headers["delta-table-version"])
        by_kind, end = parse_lines(headers, body)
        adds = [file["deltaSingleAction"]["add"] for file in by_kind.get("file", [])]
        head = [
            _line("protocol", "deltaProtocol", by_kind["protocol"][0]["deltaProtocol"]),
            _line("metaData", "deltaMetadata", by_kind["metaData"][0]["deltaMetadata"]),
        ]
        urls = [url for add in adds for url in _urls(add)]
    check_urls(urls, allows_http=allows_http)
    _check_signed(urls)
    files = [_line("file", "deltaSingleAction", {"add": add}) for add in adds]
    return DeltaPage(version=version, head=head, files=files, next_page_token=end.get("nextPageToken"))


def _urls(add: Mapping[str, Any]) -> Iterator[str]:
    """Yield all that is opened for a file."""
    yield str(add["path"])
    vector = add.get("deletionVector")
    # Any other kind is a path, too, and is checked as what it is not.
    if vector is not None and vector["storageType"] != _INLINE:
        yield str(vector["pathOrInlineDv"]) if vector["storageType"] == _BY_URL else ""


def _check_signed(urls: Sequence[str]) -> None:
    if not all(_SIGNED & _names(url) for url in urls):
        raise Refused("the gateway names a file by a URL that is not signed; ask the provider")


def _names(url: str) -> set[str]:
    """Return the names in a URL's query, as they stand there."""
    query = url.partition("#")[0].partition("?")[2]
    return {pair.partition("=")[0].lower() for pair in query.split("&")}


def _line(kind: str, name: str, content: object) -> str:
    return json.dumps({kind: {name: content}})
