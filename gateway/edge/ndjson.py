"""Lines of JSON: signatures are spliced into the holes of a page as bytes, without parsing either."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gateway.edge.json import encode_json
from gateway.errors import Internal
from gateway.v1.presign_pb2 import SignResponse
from gateway.v1.snapshot_pb2 import HOLE_EXPIRATION, HOLE_URL, FilePage


def splice(page: FilePage, signed: SignResponse) -> bytes:
    """Return the page's lines with URLs and expirations in their places."""
    lines, urls = page.lines, _urls(page, signed)
    expiration = b"%d" % signed.expires_at_ms
    pieces: list[bytes] = []
    start = 0
    for offset, kind in zip(page.holes, page.hole_kinds, strict=True):
        pieces.append(lines[start:offset])
        start = offset
        if kind == HOLE_URL:
            pieces.append(next(urls))
        elif kind == HOLE_EXPIRATION:
            pieces.append(expiration)
        else:
            raise Internal(f"a page has a hole of unknown kind {kind}")
    pieces.append(lines[start:])
    return b"".join(pieces)


def line(value: dict[str, Any]) -> bytes:
    """Return one line of a stream."""
    return encode_json(value) + b"\n"


def _urls(page: FilePage, signed: SignResponse) -> Iterator[bytes]:
    holes = page.hole_kinds.count(HOLE_URL)
    paths = page.paths.split(b"\n") if holes else []
    signatures = signed.signatures.split(b"\n") if holes else []
    if not len(paths) == len(signatures) == holes:
        raise Internal(f"a page has {holes} URLs, {len(paths)} paths and {len(signatures)} signatures")
    origin, query = signed.origin.encode(), f"?{signed.query}".encode()
    return (b"%b%b%b%b" % (origin, path, query, sign) for path, sign in zip(paths, signatures, strict=True))
