"""Many calls of one of Google's APIs in one request: its parts, and the parts of its answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from vendors.http import Reply, Request

# No part holds it: they are JSON without line breaks.
_BOUNDARY: Final = "part-of-a-batch"
_MULTIPART: Final = re.compile(
    r'multipart/mixed *; *boundary=(?:"([^"]+)"|([^"; ]+))(?: *;.*)?', re.IGNORECASE
)
_CONTENT_ID: Final = re.compile(r"<?response-call-([0-9]{1,4})>?")
_STATUS_LINE: Final = re.compile(r"HTTP/[0-9.]+ ([0-9]{3})(?: .*)?")


def batch_request(url: str, headers: Mapping[str, str], path: str, bodies: Sequence[bytes]) -> Request:
    """Return one request that posts each of the JSON bodies to the path; the headers hold for all."""
    parts = [_write_part(path, number, body) for number, body in enumerate(bodies)]
    return Request(
        method="POST",
        url=url,
        headers={**headers, "Content-Type": f"multipart/mixed; boundary={_BOUNDARY}"},
        body=b"".join([*parts, f"--{_BOUNDARY}--\r\n".encode()]),
    )


def read_batch(reply: Reply, count: int) -> list[Reply]:
    """Return the answer to each call; raise ``ValueError`` unless there is exactly one for each.

    They come in any order: a part is known by the number in its name, never by its place.
    """
    found: dict[int, Reply] = {}
    for part in _parts(reply):
        head, _, nested = part.partition("\n\n")
        name = _CONTENT_ID.fullmatch(_headers(head).get("content-id", ""))
        if name is None or int(name[1]) in found:
            raise ValueError(
                "a part of a batch's answer is to no call, or to one that has its answer already"
            )
        found[int(name[1])] = _read_part(nested)
    if sorted(found) != list(range(count)):
        raise ValueError("a batch's answer has not one part for each of its calls")
    return [found[number] for number in range(count)]


def _write_part(path: str, number: int, body: bytes) -> bytes:
    lines = (
        f"--{_BOUNDARY}",
        "Content-Type: application/http",
        f"Content-ID: <call-{number}>",
        "",
        f"POST {path} HTTP/1.1",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "",
        "",
    )
    return "\r\n".join(lines).encode() + body + b"\r\n"


def _parts(reply: Reply) -> list[str]:
    # By hand: the standard library's parser takes longer for a part than a private key for a signature.
    multipart = _MULTIPART.fullmatch(reply.headers.get("content-type", "").strip())
    if multipart is None:
        raise ValueError("a batch's answer has no parts")
    text = reply.body.decode("utf-8", "replace").replace("\r\n", "\n")
    pieces = f"\n{text}".split(f"\n--{multipart[1] or multipart[2]}")
    # What stands before the first and after the last is no part.
    if pieces[-1].strip() != "--":
        raise ValueError("a batch's answer has no end")
    return [piece.removeprefix("\n") for piece in pieces[1:-1]]


def _read_part(nested: str) -> Reply:
    """Return the answer that is nested in a part."""
    head, _, body = nested.partition("\n\n")
    first, _, rest = head.partition("\n")
    status = _STATUS_LINE.fullmatch(first)
    if status is None:
        raise ValueError("a part of a batch's answer is no answer")
    return Reply(status=int(status[1]), headers=_headers(rest), body=body.encode())


def _headers(head: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in head.split("\n"))
    return {name.strip().lower(): value.strip() for name, _, value in pairs}
