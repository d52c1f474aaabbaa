"""Presign messages from and to the domain."""

from __future__ import annotations

from typing import Final

from gateway.domain.file_path import Paths, parse_paths
from gateway.errors import InvalidArgument
from gateway.ports import Signatures
from gateway.v1 import presign_pb2 as pb

# A page of files, each with a deletion vector, and as much again.
MAX_PATHS: Final = 4000
MAX_BYTES: Final = 2 * 1024 * 1024

_LOG: Final = b"_delta_log"


def from_paths(joined: bytes, *, is_segment: bool = False) -> Paths:
    """Return the paths of a request, each of them checked."""
    if len(joined) > MAX_BYTES:
        raise InvalidArgument(
            f"a page of paths has at most {MAX_BYTES:,} bytes, this one has {len(joined):,}"
        )
    if (count := joined.count(b"\n") + 1) > MAX_PATHS:
        raise InvalidArgument(f"a page has at most {MAX_PATHS:,} paths, this one has {count:,}")
    paths = parse_paths(joined, is_segment=is_segment)
    # The log tells the whole history, whatever part of it is shared. Some file systems fold case.
    if _LOG in (folded := joined.lower()) and any(_LOG in path.split(b"/") for path in folded.split(b"\n")):
        raise InvalidArgument(f"files of {_LOG.decode()} are not signed")
    return paths


def to_proto(signatures: Signatures) -> pb.SignResponse:
    return pb.SignResponse(
        origin=signatures.origin,
        query=signatures.query,
        signatures=signatures.signatures,
        expires_at_ms=int(signatures.expires_at.timestamp() * 1000),
    )
