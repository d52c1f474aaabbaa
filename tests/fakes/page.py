"""Pages as the snapshot service renders them: lines of JSON with holes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gateway.v1.snapshot_pb2 import HOLE_EXPIRATION, HOLE_URL, FilePage, PathGroup

FILE_SIZE = 573
# Stands where the expiration goes.
EXPIRATION = "<expiration>"

_HOLE = re.compile(rb'<url ([^>]*)>|"<expiration>"')


def url_of(path: str) -> str:
    """Return what stands where the URL of a path goes."""
    return f"<url {path}>"


def page_of(lines: Iterable[dict[str, Any]], files: int) -> FilePage:
    """Return a page of lines, with holes in place of what stands for URLs and expirations."""
    text = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    pieces, holes, kinds, paths, start, cut = [], [], [], [], 0, 0
    for hole in _HOLE.finditer(text):
        pieces.append(text[start : hole.start()])
        holes.append(hole.start() - cut)
        start, cut = hole.end(), cut + len(hole[0])
        kinds.append(HOLE_EXPIRATION if hole[1] is None else HOLE_URL)
        paths += [] if hole[1] is None else [hole[1]]
    return FilePage(
        lines=b"".join([*pieces, text[start:]]),
        holes=holes,
        hole_kinds=bytes(kinds),
        groups=[PathGroup(paths=b"\n".join(paths))] if paths else [],
        files=files,
        file_bytes=files * FILE_SIZE,
    )


def fake_page(paths: Sequence[str], file_id: Callable[[str], str]) -> FilePage:
    """Return a page of files, with a URL and an expiration in each line."""
    lines = [
        {
            "file": {
                "url": url_of(path),
                "id": file_id(path),
                "partitionValues": {},
                "size": FILE_SIZE,
                "stats": '{"numRecords":1}',
                "expirationTimestamp": EXPIRATION,
            }
        }
        for path in paths
    ]
    return page_of(lines, len(lines))
