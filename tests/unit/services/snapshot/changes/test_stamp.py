from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import Unsupported
from gateway.services.snapshot.answer.line import ActionKind, LineFormat
from gateway.services.snapshot.changes.commit import CommitFile, parse_commits
from gateway.services.snapshot.changes.stamp import Piece, render_pieces
from gateway.v1 import snapshot_pb2 as pb
from tests.builders import add, cdc, remove
from tests.fakes.grants import GRANT
from tests.hypothesis_profiles import examples
from tests.unit.services.snapshot.answer.pages import render_rows
from tests.unit.services.snapshot.changes.answers import spliced

_VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "sizeInBytes": 4, "cardinality": 1}
_KINDS = {ActionKind.ADD: "add", ActionKind.REMOVE: "remove", ActionKind.CDF: "cdc"}
_NAMES = st.sampled_from(["a.parquet", "p=é/b.parquet", "s3://archive/orders/c.parquet", "d%20e.parquet"])
_VECTORS = st.sampled_from([None, _VECTOR, {**_VECTOR, "storageType": "i", "offset": 1}])
_SIZED = {"size": 3, "partitionValues": {"p": "\u2028"}}


def actions_of(kind: ActionKind, names, vector):
    make = {ActionKind.ADD: add, ActionKind.REMOVE: remove, ActionKind.CDF: cdc}[kind]
    with_vector = {"deletionVector": vector} if vector and kind is not ActionKind.CDF else {}
    return [make(name, **_SIZED, **with_vector) for name in names]


def piece_of(version: int, kind: ActionKind, names, vector=None) -> Piece:
    content = "".join(json.dumps(action) + "\n" for action in actions_of(kind, names, vector)).encode()
    [commit] = parse_commits([CommitFile(version=version, timestamp=0, name="c", content=content)])
    rows = getattr(commit, _KINDS[kind])
    return Piece(kind=kind, rows=rows, version=version, timestamp=1000 * version)


def lines_of(page: pb.FilePage):
    return [json.loads(line) for line in spliced(page).splitlines()]


def stamped(line: LineFormat, piece: Piece) -> LineFormat:
    return replace(line, version=piece.version, timestamp=piece.timestamp)


_PIECES = st.lists(
    st.builds(
        piece_of,
        st.integers(0, 2**40),
        st.sampled_from(list(_KINDS)),
        st.lists(_NAMES, min_size=1, max_size=3),
        _VECTORS,
    ),
    max_size=6,
)


@settings(max_examples=examples(0.5))
@given(_PIECES)
def test_pieces_that_are_rendered_together_are_as_if_each_was_by_itself(pieces):
    line = LineFormat(response_format=pb.RESPONSE_FORMAT_DELTA)

    together = list(render_pieces(pieces, line, GRANT))

    # Which members are optional in a line, and so come first, depends on the others.
    assert [lines_of(page) for page in together] == [
        lines_of(render_rows(piece.rows, piece.kind, stamped(line, piece), GRANT)) for piece in pieces
    ]
    assert [page.file_bytes for page in together] == [piece.rows["size"].sum() for piece in pieces]


def test_the_same_holds_in_the_parquet_format():
    pieces = [piece_of(1, ActionKind.ADD, ["a", "b"]), piece_of(2, ActionKind.CDF, ["c"])]
    line = LineFormat(response_format=pb.RESPONSE_FORMAT_PARQUET)

    first, second = render_pieces(pieces, line, GRANT)

    assert first.lines.count(b',"version":1,"timestamp":1000,"expirationTimestamp":') == 2
    assert second == render_rows(pieces[1].rows, ActionKind.CDF, stamped(line, pieces[1]), GRANT)


def test_what_cannot_be_rendered_is_refused_as_ever():
    pieces = [piece_of(1, ActionKind.ADD, ["s3://elsewhere/x"])]

    with pytest.raises(Unsupported, match="s3://elsewhere"):
        list(render_pieces(pieces, LineFormat(response_format=pb.RESPONSE_FORMAT_DELTA), GRANT))
