"""Lines of JSON: signatures are spliced into the holes of a page as bytes, without parsing either."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

from gateway.edge.json import encode_json
from gateway.errors import Internal
from gateway.v1.presign_pb2 import SignResponse
from gateway.v1.snapshot_pb2 import HOLE_EXPIRATION, HOLE_URL, FilePage


def splice(page: FilePage, signed: Sequence[SignResponse]) -> bytes:
    """Return the page's lines with URLs and expirations in their places; ``signed`` has one of each group."""
    kinds, holes = page.hole_kinds, list(page.holes)
    if len(kinds) != len(holes):
        raise Internal(f"a page has {len(holes)} holes of {len(kinds)} kinds")
    # Column by column, and joined once: a look at each hole would take longer than to copy the lines.
    pieces: list[bytes] = [b""] * (2 * len(holes) + 1)
    pieces[1::2] = _fills(kinds, page, signed)
    lines = page.lines
    pieces[::2] = map(lines.__getitem__, map(slice, [0, *holes], [*holes, len(lines)]))
    return b"".join(pieces)


def earliest(signed: Sequence[SignResponse]) -> int:
    """Return when the first URLs expire: what a line says of one holds for all of the page."""
    return min(answer.expires_at_ms for answer in signed)


def line(value: dict[str, Any]) -> bytes:
    """Return one line of a stream."""
    return encode_json(value) + b"\n"


def _fills(kinds: bytes, page: FilePage, signed: Sequence[SignResponse]) -> list[bytes]:
    """Return what goes into each hole."""
    urls = _urls(page, signed)
    if not kinds:
        return []
    if unknown := set(kinds) - {HOLE_URL, HOLE_EXPIRATION}:
        raise Internal(f"a page has a hole of unknown kind {min(unknown)}")
    if not signed:
        raise Internal("a page has an expiration, and nothing that expires")
    expiration = b"%d" % earliest(signed)
    return [next(urls) if kind == HOLE_URL else expiration for kind in kinds]


def _urls(page: FilePage, signed: Sequence[SignResponse]) -> Iterator[bytes]:
    """Return the URLs in the order of their holes, or raise: one too few would put others in wrong places."""
    holes = page.hole_kinds.count(HOLE_URL)
    # Nearly all pages have one group, and then nothing says so.
    order = page.hole_groups or bytes(holes)
    if len(page.groups) != len(signed) or len(order) != holes:
        raise Internal(f"a page has {holes} URLs, {len(page.groups)} groups and {len(signed)} signed ones")
    groups = [
        _group(group.paths, answer, order.count(number))
        for number, (group, answer) in enumerate(zip(page.groups, signed, strict=True))
    ]
    if holes and max(order) >= len(groups):
        raise Internal(f"a page has {len(groups)} groups, and a URL of group {max(order)}")
    return groups[0] if len(groups) == 1 else (next(groups[number]) for number in order)


def _group(paths: bytes, signed: SignResponse, holes: int) -> Iterator[bytes]:
    names, signatures = paths.split(b"\n"), signed.signatures.split(b"\n")
    if not len(names) == len(signatures) == holes:
        raise Internal(f"a page has {holes} URLs, {len(names)} paths and {len(signatures)} signatures")
    origin, query = signed.origin.encode(), f"?{signed.query}".encode()
    return map(b"".join, zip(repeat(origin), names, repeat(query), signatures, strict=False))
