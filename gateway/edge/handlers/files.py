"""Files of local tables, by URLs that the gateway signed: whoever has the URL may read that one file."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from aiohttp import hdrs, web

from gateway.domain.file_path import decode_path
from gateway.domain.key import Keys
from gateway.domain.local_url import LocalUrl, parse, verify
from gateway.edge.byte_range import ByteRange, parse_range
from gateway.edge.conditional import allows_range, http_date, is_known, is_other
from gateway.edge.errors import StreamAborted, fault_of
from gateway.edge.local_files import FileFailed, FileGone, FileRefused, LocalFile, open_local_file
from gateway.errors import NotFound, PermissionDenied, Unavailable
from gateway.ports import Clock

# What is read and handed to the connection at once.
_PIECE: Final = 256 * 1024
# Of files that do not exist; beyond that all are told of anew.
_MOST_TOLD: Final = 10_000
_METHODS: Final = (hdrs.METH_GET, hdrs.METH_HEAD)

log = logging.getLogger(__name__)


class FilesHandler:
    """Is mounted at ``…/files/{storage}/{path}``: a signature says what may be read, a root where it is."""

    def __init__(self, *, roots: Callable[[str], Path | None], keys: Keys, clock: Clock) -> None:
        self._roots = roots
        self._keys = keys
        self._clock = clock
        self._told_gone: set[tuple[str, str]] = set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.method not in _METHODS:
            raise web.HTTPMethodNotAllowed(request.method, _METHODS)
        file = await self._open(request)
        try:
            return await _serve(request, file)
        finally:
            file.close()

    async def _open(self, request: web.Request) -> LocalFile:
        url = _url_of(request)
        root = self._roots(url.storage) if url else None
        # One answer for all that is wrong: which of it was, helps only whoever tries.
        refusal = PermissionDenied("the URL is not valid or has expired; query the table again for another")
        if url is None or root is None or not verify(url, str(root), self._keys, self._clock()):
            raise refusal
        segments = decode_path(url.path).split("/")
        if url.depth >= len(segments):
            raise refusal
        try:
            return await open_local_file(root, segments)
        except FileGone as exc:
            self._tell_gone(url)
            raise NotFound("the file does not exist any more; query the table again") from exc
        except FileRefused as exc:
            log.warning("%s of the storage %s is not a plain file and not served", url.path, url.storage)
            raise refusal from exc
        except FileFailed as exc:
            log.exception("%s of the storage %s cannot be opened", url.path, url.storage)
            raise Unavailable("the file cannot be read at the moment; try again later") from exc

    def _tell_gone(self, url: LocalUrl) -> None:
        # Once for each: clients ask again and again.
        key = url.storage, url.path
        if key in self._told_gone:
            return
        if len(self._told_gone) >= _MOST_TOLD:
            self._told_gone.clear()
        self._told_gone.add(key)
        log.warning("%s of the storage %s is in a table's log and does not exist", url.path, url.storage)


def _url_of(request: web.Request) -> LocalUrl | None:
    """Return the signed URL of a request, from its target as it was sent."""
    target, resource = request.rel_url, request.match_info.route.resource
    mount = resource.canonical.partition("{")[0] if resource else ""
    if not target.raw_path.startswith(mount) or target.raw_fragment:
        return None
    storage, _, path = target.raw_path[len(mount) :].partition("/")
    return parse(storage, path, target.raw_query_string)


async def _serve(request: web.Request, file: LocalFile) -> web.StreamResponse:
    headers = {
        hdrs.ACCEPT_RANGES: "bytes",
        hdrs.CACHE_CONTROL: "private, no-store",
        hdrs.CONTENT_TYPE: "application/octet-stream",
        hdrs.ETAG: file.etag,
        hdrs.LAST_MODIFIED: http_date(file.modified_at),
    }
    if is_other(request.headers, file.etag):
        raise web.HTTPPreconditionFailed(reason="the file is another version than If-Match asks for")
    if is_known(request.headers, file.etag, file.modified_at):
        return web.Response(status=304, headers=headers)
    part = _part_of(request, file)
    if part is None:
        whole = ByteRange(start=0, end=file.size)
        return await _send(request, file, whole, web.StreamResponse(headers=headers))
    headers[hdrs.CONTENT_RANGE] = f"bytes {part.start}-{part.end - 1}/{file.size}"
    return await _send(request, file, part, web.StreamResponse(status=206, headers=headers))


def _part_of(request: web.Request, file: LocalFile) -> ByteRange | None:
    # HTTP defines ranges for GET alone.
    if request.method != hdrs.METH_GET or not allows_range(request.headers, file.etag, file.modified_at):
        return None
    part = parse_range(request.headers.get(hdrs.RANGE, ""), file.size)
    if part is not None and part.start >= part.end:
        headers = {hdrs.CONTENT_RANGE: f"bytes */{file.size}"}
        raise web.HTTPRequestRangeNotSatisfiable(headers=headers, reason="the range lies outside of the file")
    return part


async def _send(
    request: web.Request, file: LocalFile, part: ByteRange, response: web.StreamResponse
) -> web.StreamResponse:
    response.content_length = part.end - part.start
    await response.prepare(request)
    offset = part.start if request.method == hdrs.METH_GET else part.end
    while offset < part.end:
        piece = await _read(request, file, offset, min(_PIECE, part.end - offset))
        await response.write(piece)
        offset += len(piece)
    await response.write_eof()
    return response


async def _read(request: web.Request, file: LocalFile, offset: int, length: int) -> bytes:
    """Return a piece of the file; where there is none, cut the answer off, since it has begun already."""
    try:
        if piece := await file.read(offset, length):
            return piece
    except FileFailed as exc:
        log.exception("a file failed while it was being read")
        raise _aborted(request, "the file cannot be read to its end") from exc
    raise _aborted(request, "the file became shorter while it was being read")


def _aborted(request: web.Request, reason: str) -> StreamAborted:
    if request.transport is not None:
        request.transport.abort()
    return StreamAborted(fault_of(Unavailable(reason)))
