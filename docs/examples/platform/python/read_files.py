"""Prints the files of a table as lines of JSON, each with a URL that reads it.

    python read_files.py --catalog HOST:PORT --snapshot HOST:PORT --presign HOST:PORT \\
        --certificate tls.crt --key tls.key --ca ca.crt share.schema.table
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import chain

import grpc
from sluice import CALL_TIMEOUT, STREAM_TIMEOUT, Grant, explain, identity_of, parse_arguments, patiently

from gateway.v1 import catalog_pb2, presign_pb2, presign_pb2_grpc, snapshot_pb2, snapshot_pb2_grpc


def main() -> int:
    arguments = parse_arguments("catalog", "snapshot", "presign")
    identity = identity_of(arguments)
    with (
        identity.channel(arguments.catalog) as catalog,
        identity.channel(arguments.snapshot) as snapshot,
        identity.channel(arguments.presign) as presign,
    ):
        asked = (catalog, arguments.table)
        reading = Grant(*asked, catalog_pb2.AUDIENCE_SNAPSHOT, arguments.recipient)
        signing = Grant(*asked, catalog_pb2.AUDIENCE_PRESIGN, arguments.recipient)
        try:
            for page in read_pages(snapshot, reading):
                sys.stdout.write(splice(page, sign(presign, signing, page)).decode())
        except grpc.RpcError as error:
            sys.stderr.write(f"{explain(error)}\n")
            return 1
    return 0


def read_pages(channel: grpc.Channel, grant: Grant) -> Iterator[snapshot_pb2.FilePage]:
    """Yield the pages of the latest version; raise rather than end early."""
    stub = snapshot_pb2_grpc.SnapshotStub(channel)

    def begin() -> Iterator[snapshot_pb2.QueryResponse]:
        messages = stub.Query(snapshot_pb2.QueryRequest(grant=grant.token), timeout=STREAM_TIMEOUT)
        # A stream that is refused says so in place of its first message.
        return chain((next(messages, snapshot_pb2.QueryResponse()),), messages)

    is_whole = False
    for message in patiently(begin):
        if message.HasField("page"):
            yield message.page
        is_whole = message.HasField("end")
    if not is_whole:
        raise EOFError("the answer is not whole")


def sign(
    channel: grpc.Channel, grant: Grant, page: snapshot_pb2.FilePage
) -> Sequence[presign_pb2.SignResponse]:
    """Return the signatures of a page: one answer for each group of paths."""
    stub = presign_pb2_grpc.PresignStub(channel)

    def request(group: snapshot_pb2.PathGroup) -> presign_pb2.SignRequest:
        return presign_pb2.SignRequest(
            grant=grant.token, location=group.location, paths=group.paths, is_segment=group.is_segment
        )

    return [
        patiently(lambda group=group: stub.Sign(request(group), timeout=CALL_TIMEOUT))
        for group in page.groups
    ]


def splice(page: snapshot_pb2.FilePage, signed: Sequence[presign_pb2.SignResponse]) -> bytes:
    """Return a page's lines with its URLs, and when they expire, in the holes that were left for them."""
    urls = [url_column(group, answer) for group, answer in zip(page.groups, signed, strict=True)]
    groups = iter(page.hole_groups or bytes(len(page.holes)))
    expiration = str(min((answer.expires_at_ms for answer in signed), default=0)).encode()
    pieces, start = [], 0
    for offset, kind in zip(page.holes, page.hole_kinds, strict=True):
        fill = next(urls[next(groups)]) if kind == snapshot_pb2.HOLE_URL else expiration
        pieces += [page.lines[start:offset], fill]
        start = offset
    return b"".join([*pieces, page.lines[start:]])


def url_column(group: snapshot_pb2.PathGroup, signed: presign_pb2.SignResponse) -> Iterator[bytes]:
    """Yield the URLs of a group, in the order of its paths."""
    paths, signatures = group.paths.split(b"\n"), signed.signatures.split(b"\n")
    for path, signature in zip(paths, signatures, strict=True):
        yield b"%b%b?%b%b" % (signed.origin.encode(), path, signed.query.encode(), signature)


if __name__ == "__main__":
    sys.exit(main())
