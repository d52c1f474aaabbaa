"""A plain client of a sharing server's REST API, for reading what it says rather than its data."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, BinaryIO, Final, TypeVar
from urllib.parse import quote

import aiohttp
from yarl import URL

from gateway.adapters.json_log import REDACTED, redact
from gateway.commands.comparison.answer import (
    FileEntry,
    Json,
    NotTheProtocol,
    TableAnswer,
    read_answer,
    read_file,
)
from gateway.commands.comparison.profile import Profile
from gateway.domain.name import TableName
from gateway.ports import Clock

T = TypeVar("T")

VERSION_HEADER: Final = "delta-table-version"
ATTEMPTS: Final = 5
_MAX_DELAY: Final = 60.0
_PAGE: Final = "500"
_CHUNK: Final = 256 * 1024
_ERROR_BYTES: Final = 4096
# What is compared is what the servers say: for that, no feature needs to be understood.
_FEATURES: Final = (
    "deletionvectors",
    "columnmapping",
    "timestampntz",
    "typewidening",
    "typewidening-preview",
    "varianttype",
    "varianttype-preview",
    "variantshredding",
    "variantshredding-preview",
    "v2checkpoint",
    "vacuumprotocolcheck",
)
_CAPABLE: Final = {
    "delta-sharing-capabilities": f"responseformat=delta,parquet;readerfeatures={','.join(_FEATURES)}"
}
_NO_HEADERS: Final[Mapping[str, str]] = {}


class SharingError(Exception):
    """A call that did not give what the protocol promises. The message holds no URL and no token."""


class Unreachable(SharingError):
    """No answer arrived, however often it was asked for."""


class Refused(SharingError):
    """The server answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}".strip())
        self.status = status


class SharingClient:
    """Reads one server, and tries again when it is asked to or nothing arrives."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        profile: Profile,
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session = session
        self._profile = profile
        self._clock = clock
        self._sleep = sleep
        self._reached = False

    async def list_shares(self) -> list[Json]:
        return await self._list("shares")

    async def list_schemas(self, share: str) -> list[Json]:
        return await self._list(f"shares/{_quoted(share)}/schemas")

    async def list_tables(self, share: str) -> list[Json]:
        try:
            return await self._list(f"shares/{_quoted(share)}/all-tables")
        except Refused as exc:
            if exc.status not in {404, 405}:
                raise
        # Servers that are older than all-tables.
        tables: list[Json] = []
        for schema in await self.list_schemas(share):
            tables += await self._list(f"shares/{_quoted(share)}/schemas/{_quoted(schema['name'])}/tables")
        return tables

    async def get_version(self, name: TableName) -> int:
        try:
            return await self._call("GET", f"{_path(name)}/version", _version)
        except Refused as exc:
            if exc.status not in {404, 405}:
                raise
            refusal = exc
        try:
            return await self._call("HEAD", _path(name), _version)
        except SharingError:
            raise refusal from None

    async def get_metadata(self, name: TableName) -> TableAnswer:
        return await self._call("GET", f"{_path(name)}/metadata", _table_answer, headers=_CAPABLE)

    async def query(self, name: TableName) -> TableAnswer:
        return await self._call("POST", f"{_path(name)}/query", _table_answer, body={}, headers=_CAPABLE)

    async def download(self, file: FileEntry, target: BinaryIO) -> int:
        """Write a file's content to a target and return its size."""

        async def save(answer: aiohttp.ClientResponse) -> int:
            target.seek(0)
            target.truncate()
            async for chunk in answer.content.iter_chunked(_CHUNK):
                await asyncio.to_thread(_write, target, chunk)
            return target.tell()

        try:
            # Encoded as it is: quoting it anew would break its signature.
            return await self._send("GET", URL(file.url, encoded=True), save, headers={})
        except Refused as exc:
            # A store quotes the signature it was given.
            raise Refused(exc.status, "from the store of the files") from None
        except ValueError:
            raise SharingError("the file's url is not one") from None

    async def _list(self, path: str) -> list[Json]:
        items: list[Json] = []
        tokens: set[str] = set()
        params = {"maxResults": _PAGE}
        while True:
            page = await self._call("GET", path, _page, params=params)
            items += _named(page.get("items") or [])
            token = page.get("nextPageToken")
            if not token:
                return items
            if not isinstance(token, str) or token in tokens:
                raise SharingError("the server's pages do not come to an end")
            tokens.add(token)
            params = {"maxResults": _PAGE, "pageToken": token}

    async def _call(
        self,
        method: str,
        path: str,
        read: Callable[[aiohttp.ClientResponse], Awaitable[T]],
        *,
        params: Mapping[str, str] | None = None,
        body: Json | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> T:
        url = URL(f"{self._profile.endpoint}/{path}", encoded=True)
        sent = {"Authorization": f"Bearer {self._profile.bearer_token}", **headers}
        return await self._send(method, url, read, headers=sent, params=params, json=body)

    async def _send(
        self, method: str, url: URL, read: Callable[[aiohttp.ClientResponse], Awaitable[T]], **options: Any
    ) -> T:
        for attempt in range(ATTEMPTS):
            last = attempt + 1 == ATTEMPTS
            delay = float(2**attempt)
            try:
                async with self._session.request(method, url, **options) as answer:
                    self._reached = True
                    if answer.status < 400:  # noqa: PLR2004 -- where HTTP's errors begin
                        return await read(answer)
                    if last or not _may_retry(answer.status):
                        raise await self._refusal(answer)
                    delay = _retry_after(answer.headers.get("Retry-After", ""), self._clock(), delay)
            except (aiohttp.ClientError, TimeoutError, OSError) as exc:
                # A server that never answered is more likely misspelt than busy.
                if last or not self._reached or isinstance(exc, aiohttp.InvalidURL):
                    # Its own words may hold the URL, and the URL a signature.
                    raise Unreachable(_reason(exc)) from None
            await self._sleep(min(delay, _MAX_DELAY))
        raise AssertionError("the last attempt returns or raises")

    async def _refusal(self, answer: aiohttp.ClientResponse) -> Refused:
        text = (await answer.content.read(_ERROR_BYTES)).decode("utf-8", "replace")
        try:
            body = json.loads(text)
            message = f"{body['errorCode']}: {body['message']}"
        except (ValueError, KeyError, TypeError, RecursionError):
            message = " ".join(text.split())[:200] or (answer.reason or "")
        return Refused(answer.status, redact(message.replace(self._profile.bearer_token, REDACTED)))


def _write(target: BinaryIO, chunk: bytes) -> None:
    try:
        target.write(chunk)
    except OSError as exc:
        raise SharingError(f"cannot keep the file on this machine: {exc.strerror}") from exc


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _path(name: TableName) -> str:
    share, schema, table = _quoted(name.share), _quoted(name.schema), _quoted(name.table)
    return f"shares/{share}/schemas/{schema}/tables/{table}"


async def _page(answer: aiohttp.ClientResponse) -> Json:
    return _object(await answer.read())


def _named(items: object) -> list[Json]:
    if not isinstance(items, list) or not all(
        isinstance(item, dict) and isinstance(item.get("name"), str) for item in items
    ):
        raise SharingError("the server lists something without a name")
    return items


async def _version(answer: aiohttp.ClientResponse) -> int:
    return _version_of(answer)


async def _table_answer(answer: aiohttp.ClientResponse) -> TableAnswer:
    heads: dict[str, Json] = {}
    files: list[FileEntry] = []
    try:
        async for line in _lines(answer):
            action = _object(line)
            if "file" in action:
                files.append(read_file(action["file"]))
            elif "endStreamAction" in action:
                _check_end(action["endStreamAction"])
            else:
                heads |= action
        return read_answer(_version_of(answer), heads, files)
    except NotTheProtocol as exc:
        raise SharingError(str(exc)) from None


def _check_end(end: object) -> None:
    if isinstance(end, dict) and end.get("errorMessage"):
        status = end.get("httpStatusErrorCode")
        raise Refused(status if isinstance(status, int) else 500, str(end["errorMessage"]))


async def _lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in answer.content.iter_chunked(_CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                yield line
    if rest.strip():
        yield rest


def _object(text: bytes) -> Json:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise SharingError("the answer is not JSON") from None
    if not isinstance(value, dict):
        raise SharingError("the answer is not a JSON object")
    return value


def _version_of(answer: aiohttp.ClientResponse) -> int:
    try:
        return int(answer.headers[VERSION_HEADER])
    except (KeyError, ValueError):
        raise SharingError(f"the answer has no {VERSION_HEADER} header with a number") from None


def _may_retry(status: int) -> bool:
    return status == 429 or status >= 500  # noqa: PLR2004 -- too many requests, and the server's own faults


def _retry_after(value: str, now: datetime, otherwise: float) -> float:
    """Return the seconds that a Retry-After header asks for."""
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return otherwise
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max((at - now).total_seconds(), 0.0)


def _reason(exc: BaseException) -> str:
    if isinstance(exc, aiohttp.ClientConnectorError) and exc.os_error.strerror:
        return f"cannot connect: {exc.os_error.strerror}"
    for kind, words in _REASONS.items():
        if isinstance(exc, kind):
            return words
    return f"no answer ({type(exc).__name__})"


_REASONS: Final[Mapping[type[BaseException], str]] = {
    aiohttp.ClientConnectorCertificateError: "its certificate is not trusted",
    aiohttp.ClientConnectorError: "cannot connect",
    aiohttp.InvalidURL: "the address is not one of http or https",
    aiohttp.ClientPayloadError: "the answer broke off",
    TimeoutError: "no answer in time",
}
