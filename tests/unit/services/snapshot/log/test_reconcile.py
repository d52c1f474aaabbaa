from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.services.snapshot.log.reconcile import COMMIT, are_among, find_live, keys_of
from gateway.services.snapshot.log.schema import DELETION_VECTOR, REMOVED, VECTOR_ID, vector_id
from tests.hypothesis_profiles import examples

_PATHS = st.sampled_from(["a", "b", "a@1"])
# One that without its offset, or with it in another place, would be taken for another.
_VECTORS = st.sampled_from([None, ("u", "x", None), ("u", "x", 1), ("u", "x@1", None), ("p", "x", 1)])
_MEMBERS = ("storageType", "pathOrInlineDv", "offset")
_ACTIONS = st.tuples(st.booleans(), _PATHS, _VECTORS)


def added(*rows: tuple[str, int], vectors: tuple[str, ...] = ()) -> pl.DataFrame:
    frame = pl.DataFrame(list(rows), schema={"path": pl.String, COMMIT: pl.Int64}, orient="row")
    named = [{"storageType": "u", "pathOrInlineDv": name} if name else None for name in vectors]
    column = pl.Series("deletionVector", named or [None] * len(rows), dtype=DELETION_VECTOR)
    return frame.with_columns(column)


def removed(*rows: tuple[str, int], vectors: tuple[str | None, ...] = ()) -> pl.DataFrame:
    keys = [
        (path, vector, commit)
        for (path, commit), vector in zip(rows, vectors or [None] * len(rows), strict=True)
    ]
    return pl.DataFrame(keys, schema={**REMOVED, COMMIT: pl.Int64}, orient="row")


def test_a_file_is_live_unless_a_later_commit_removes_it():
    live = find_live(
        added(("earlier", 1), ("same", 2), ("later", 3), ("never", 1)),
        removed(("earlier", 2), ("same", 2), ("later", 2)),
    )

    assert live["path"].to_list() == ["same", "later", "never"]
    assert live.columns == ["path", "deletionVector"]


def test_a_file_is_as_it_was_added_last():
    rows = added(("a", 1), ("b", 1), ("a", 2)).with_columns(size=pl.Series([1, 2, 3]))

    assert find_live(rows, removed()).select("path", "size").rows() == [("b", 2), ("a", 3)]


def test_the_last_remove_of_a_file_counts():
    assert find_live(added(("a", 2)), removed(("a", 1), ("a", 3), ("a", 2))).is_empty()


def test_one_path_with_two_deletion_vectors_is_two_files():
    files = added(("a", 1), ("a", 1), ("a", 1), vectors=("", "x", "y"))

    live = find_live(files, removed(("a", 2), ("a", 2), vectors=(None, "ux")))

    assert live["deletionVector"].struct.field("pathOrInlineDv").to_list() == ["y"]


@settings(max_examples=examples(3))
@given(st.lists(st.lists(_ACTIONS, max_size=6), max_size=6))
def test_what_is_live_is_what_a_replay_one_action_at_a_time_says(commits):
    expected: dict[tuple[str, str | None], int] = {}
    rows: list[tuple[str, Any, int]] = []
    gone: list[tuple[str, str | None, int]] = []
    for number, actions in enumerate(commits):
        # Within one commit an add outlives a remove, wherever they stand.
        for adds, path, vector in sorted(actions, key=lambda action: action[0]):
            if adds:
                expected.pop((path, id_of(vector)), None)
                expected[path, id_of(vector)] = len(rows)
                rows.append((path, vector and dict(zip(_MEMBERS, vector, strict=True)), number))
            else:
                expected.pop((path, id_of(vector)), None)
                gone.append((path, id_of(vector), number))
    schema = pl.Schema([("path", pl.String()), ("deletionVector", DELETION_VECTOR), (COMMIT, pl.Int64())])
    files = pl.DataFrame(rows, schema=schema, orient="row").with_row_index("row")
    removes = pl.DataFrame(gone, schema={**REMOVED, COMMIT: pl.Int64}, orient="row")

    live = find_live(files, removes).with_columns(vector_id(pl.col("deletionVector")))

    assert live.select("path", VECTOR_ID, "row").rows() == [(*key, row) for key, row in expected.items()]


@settings(max_examples=examples(0.5))
@given(st.lists(st.tuples(_PATHS, _VECTORS), min_size=1, max_size=6), st.data())
def test_keys_are_the_same_however_many_there_are(files, data):
    frame = pl.DataFrame(
        [(path, vector and dict(zip(_MEMBERS, vector, strict=True))) for path, vector in files],
        schema=pl.Schema([("path", pl.String()), ("deletionVector", DELETION_VECTOR)]),
        orient="row",
    )
    expected = [(path, id_of(vector)) for path, vector in files]
    rows = data.draw(st.lists(st.integers(0, len(files) - 1)))

    assert keys_of(frame).rows() == expected
    assert keys_of(frame, pl.Series(rows, dtype=pl.UInt32)).rows() == [expected[row] for row in rows]
    # Many are looked at in another way.
    assert keys_of(pl.concat([frame] * 1001)).rows() == expected * 1001


@settings(max_examples=examples(0.5))
@given(*[st.lists(st.tuples(_PATHS, st.sampled_from([None, "ux", "ux@1"])), max_size=6)] * 2)
def test_keys_are_found_among_others_however_many_there_are(keys, others):
    expected = [key in others for key in keys]
    schema = pl.Schema(REMOVED)
    left = pl.DataFrame(keys, schema=schema, orient="row")
    right = pl.DataFrame(others, schema=schema, orient="row")
    # Many are looked at in another way.
    more = pl.concat([right, *[pl.DataFrame([("c", None)] * 1001, schema=schema, orient="row")]])

    assert are_among(left, right).to_list() == expected
    assert are_among(left, more).to_list() == expected


def id_of(vector: tuple[str, str, int | None] | None) -> str | None:
    if vector is None:
        return None
    kind, place, offset = vector
    return f"{kind}{place}" if offset is None else f"{kind}{place}@{offset}"
