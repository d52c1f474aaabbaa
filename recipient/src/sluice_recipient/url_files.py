"""The files of a shared table by URLs that are renewed for as long as somebody reads them."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Collection, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from sluice_recipient.address import TableName
from sluice_recipient.client import GatewayClient
from sluice_recipient.errors import NotFound, NotUsable, Refused, Unavailable
from sluice_recipient.listing import Listing, SharedFile
from sluice_recipient.refreshing import Refreshing
from sluice_recipient.transport import Response

# A version's number, or a time such as 2026-01-31T00:00:00Z.
Version: TypeAlias = int | str

# What stores say to a URL whose time is over: Google answers with the first of them.
_REFUSALS: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_ANSWERED: Final = frozenset({HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT})
# Small files are many and wait for the network, large ones fill the memory.
_AT_ONCE: Final = 8
_MOST_BYTES_AHEAD: Final = 64 << 20


class UrlFiles:
    """The files of one version of a table, whatever is committed to it in the meantime."""

    def __init__(self, client: GatewayClient, name: TableName, version: Version | None = None) -> None:
        self._client = client
        self._name = name
        self._at = to_question(version)
        self._first = self._ask(self._at)
        self._token = self._first.refresh_token
        self._refreshing = Refreshing(self._list_again, client.clock, first=self._first)

    def __iter__(self) -> Iterator[SharedFile]:
        return iter(self._first.files)

    def __len__(self) -> int:
        return len(self._first.files)

    def __repr__(self) -> str:
        return f"UrlFiles({str(self._name)!r}, version={self.version}, files={len(self)})"

    @property
    def version(self) -> int:
        return self._first.version

    @property
    def schema(self) -> str:
        """The table's schema in Delta's own JSON."""
        return self._first.schema

    def url(self, file: SharedFile) -> str:
        """Return a URL that reads a file: for a quarter of an hour at least, where URLs live that long."""
        return self._refreshing.current().urls[file.id]

    def open(self, file: SharedFile) -> UrlFile:
        """Return a file to read and seek in; its URL is renewed on the way."""
        return UrlFile(self, file)

    def contents(self) -> Generator[tuple[SharedFile, bytes], None, None]:
        """Return all files with what is in them, in order; the next ones are on their way meanwhile."""
        waiting: deque[tuple[SharedFile, Future[bytes]]] = deque()
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="sluice-recipient") as threads:
            try:
                for file in self:
                    waiting.append((file, threads.submit(self.read, file)))
                    while _is_enough(waiting):
                        yield _next(waiting)
                while waiting:
                    yield _next(waiting)
            finally:
                # Whoever has seen enough waits for no more than what is on its way.
                for _, content in waiting:
                    content.cancel()

    def read(self, file: SharedFile, first: int = 0, last: int | None = None) -> bytes:
        """Return the bytes of a file from the first to the last of these; with a new URL if need be."""
        last = file.size - 1 if last is None else last
        if last < first:
            return b""
        listing = self._refreshing.current()
        response = self._client.fetch(listing.urls[file.id], first, last)
        if response.status in _REFUSALS:
            # By the store's clock, or by what signed it, the URL was over already.
            listing = self._refreshing.instead_of(listing)
            response = self._client.fetch(listing.urls[file.id], first, last)
        return _content(response, first, last)

    def _list_again(self) -> Listing:
        fresh = self._ask_again()
        if not fresh.urls.keys() >= self._first.urls.keys():
            raise NotUsable(
                f"table {self._name} has changed, and the server gives no URLs for what it was; open it again"
            )
        self._token = fresh.refresh_token
        return fresh

    def _ask_again(self) -> Listing:
        if self._at:
            # A time could by now mean another version than it did.
            return self._ask({"version": self._first.version})
        if self._token is not None:
            try:
                return self._ask({}, refreshToken=self._token)
            except Refused:
                # Such tokens live for a day. The files may still be those of the table.
                self._token = None
        return self._ask({})

    def _ask(self, at: dict[str, Any], **refresh: str) -> Listing:
        # A version is itself the way back to it.
        wanted = {} if at else {"includeRefreshToken": True, **refresh}
        return self._client.files(self._name, at=at, refresh=wanted)


class UrlFile(io.RawIOBase):
    """One file, of which each read is a request."""

    def __init__(self, files: UrlFiles, file: SharedFile) -> None:
        self._files = files
        self._file = file
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._file.size}[whence]
        self._position = max(origin + offset, 0)
        return self._position

    def readinto(self, buffer: Any, /) -> int:
        count = min(len(buffer), self._file.size - self._position)
        if count <= 0:
            return 0
        buffer[:count] = self._files.read(self._file, self._position, self._position + count - 1)
        self._position += count
        return count


def to_question(version: Version | None) -> dict[str, Any]:
    """Return what a query asks a version with."""
    return {} if version is None else {"version" if isinstance(version, int) else "timestamp": version}


def _is_enough(waiting: Collection[tuple[SharedFile, Future[bytes]]]) -> bool:
    return len(waiting) >= _AT_ONCE or sum(file.size for file, _ in waiting) >= _MOST_BYTES_AHEAD


def _next(waiting: deque[tuple[SharedFile, Future[bytes]]]) -> tuple[SharedFile, bytes]:
    file, content = waiting.popleft()
    return file, content.result()


def _content(response: Response, first: int, last: int) -> bytes:
    if response.status in _REFUSALS:
        raise Refused(f"the store refuses a URL that is new (HTTP {response.status}); ask the provider")
    if response.status == HTTPStatus.NOT_FOUND:
        raise NotFound(
            "a file of the table is gone from the store; open the table again for its latest files"
        )
    if response.status not in _ANSWERED:
        raise Unavailable(f"the store does not give the file (HTTP {response.status}); try again later")
    # Who knows no ranges sends it all.
    whole = response.status == HTTPStatus.OK
    found = response.body[first : last + 1] if whole else response.body
    if len(found) != last + 1 - first:
        raise Unavailable("the store sent less of a file than there is; try again later")
    return found
