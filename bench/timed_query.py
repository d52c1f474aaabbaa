"""One query through HTTP: how long until its first line, how long in all, and how many lines came."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from http.client import OK, HTTPConnection, HTTPResponse
from pathlib import Path
from time import perf_counter
from typing import BinaryIO
from urllib.parse import urlsplit

CAPABILITIES = {
    "parquet": "responseformat=parquet",
    "delta": "responseformat=delta;readerfeatures=deletionvectors",
}
TIMEOUT = 600.0
_PIECE = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    path: str
    token: str
    response_format: str
    # What the body of the request says.
    asked: str = "{}"
    encoding: str = "identity"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    first_line: float
    whole: float
    lines: int
    # Of the body, as it came.
    size: int


def ask(origin: str, question: Question, copy: Path | None = None) -> Answered:
    """Ask a query; a copy of the answer can be kept."""
    url = urlsplit(origin)
    connection = HTTPConnection(url.hostname or "", url.port, timeout=TIMEOUT)
    headers = {
        "Authorization": f"Bearer {question.token}",
        "Content-Type": "application/json",
        "Accept-Encoding": question.encoding,
        "delta-sharing-capabilities": CAPABILITIES[question.response_format],
    }
    try:
        began = perf_counter()
        connection.request("POST", question.path, question.asked, headers)
        response = connection.getresponse()
        if response.status != OK:
            raise RuntimeError(f"{response.status}: {response.read().decode(errors='replace')[:500]}")
        if copy is None:
            return _read(response, None, began)
        with copy.open("wb") as file:
            return _read(response, file, began)
    finally:
        connection.close()


def _read(response: HTTPResponse, copy: BinaryIO | None, began: float) -> Answered:
    first_line, lines, size = 0.0, 0, 0
    decode = _decoder(response.headers.get("Content-Encoding", "identity"))
    while piece := response.read1(_PIECE):
        size += len(piece)
        piece = decode(piece)
        lines += piece.count(b"\n")
        if lines and not first_line:
            first_line = perf_counter() - began
        if copy is not None:
            copy.write(piece)
    return Answered(first_line=first_line, whole=perf_counter() - began, lines=lines, size=size)


def _decoder(encoding: str) -> Callable[[bytes], bytes]:
    if encoding == "identity":
        return bytes
    if encoding == "gzip":
        return zlib.decompressobj(wbits=31).decompress
    raise RuntimeError(f"an answer came in {encoding}")
