"""Blob Batch: several deletions in one request, each with its own authorization and its own answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import web

from tests.doubles.azure_sas import AccessDenied

_BOUNDARY = re.compile(r"multipart/mixed; ?boundary=\"?([A-Za-z0-9_'()+,./:=?-]{1,70})\"?")
_ANSWERS = "batchresponse"
_MOST = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    number: str
    method: str
    target: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    number: str
    status: int
    code: str = ""


def parse_batch(content_type: str, body: bytes) -> list[Part]:
    """Return the requests inside, or refuse what is not a batch of deletions."""
    found = _BOUNDARY.fullmatch(content_type)
    if found is None:
        raise AccessDenied("InvalidHeaderValue", "not a batch", 400)
    pieces = body.decode("utf-8", errors="strict").split(f"--{found.group(1)}")
    # Before the first mark there is nothing, and after the last only its end.
    parts = [_parse_part(piece) for piece in pieces[1:-1]]
    if pieces[0].strip() or pieces[-1].strip() != "--" or not 1 <= len(parts) <= _MOST:
        raise AccessDenied("InvalidInput", "not a whole batch", 400)
    if any(part.method != "DELETE" for part in parts):
        raise AccessDenied("AuthorizationFailure", "only deletions are understood here")
    return parts


def to_response(answers: Iterable[Answer]) -> web.Response:
    lines: list[str] = []
    for answer in answers:
        phrase = HTTPStatus(answer.status).phrase
        lines += [f"--{_ANSWERS}", "Content-Type: application/http", f"Content-ID: {answer.number}", ""]
        lines += [f"HTTP/1.1 {answer.status} {phrase}"]
        lines += [f"x-ms-error-code: {answer.code}"] if answer.code else []
        lines += ["", ""]
    lines += [f"--{_ANSWERS}--", ""]
    headers = {"Content-Type": f"multipart/mixed; boundary={_ANSWERS}"}
    return web.Response(status=202, body="\r\n".join(lines).encode(), headers=headers)


def _parse_part(piece: str) -> Part:
    outer, _, inner = piece.partition("\r\n\r\n")
    head = inner.split("\r\n\r\n")[0].split("\r\n")
    line = re.fullmatch(r"([A-Z]+) (/[^ ]*) HTTP/1\.1", head[0])
    number = _headers(outer.strip().split("\r\n")).get("content-id")
    if line is None or number is None:
        raise AccessDenied("InvalidInput", "a part that is no request", 400)
    return Part(number=number, method=line.group(1), target=line.group(2), headers=_headers(head[1:]))


def _headers(lines: Iterable[str]) -> dict[str, str]:
    pairs = (line.partition(":") for line in lines if line)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}
