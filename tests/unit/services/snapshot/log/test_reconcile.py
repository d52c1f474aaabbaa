from __future__ import annotations

import polars as pl

from gateway.services.snapshot.log.reconcile import COMMIT, find_live


def frame(*rows: tuple[str, int]) -> pl.DataFrame:
    schema = {"path": pl.String, COMMIT: pl.Int64}
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def test_a_file_is_live_unless_a_later_commit_removes_it():
    added = frame(("earlier", 1), ("same", 2), ("later", 3), ("never", 1))

    live = find_live(added, frame(("earlier", 2), ("same", 2), ("later", 2)))

    assert live["path"].to_list() == ["same", "later", "never"]
    assert live.columns == ["path"]


def test_a_file_is_as_it_was_added_last():
    added = frame(("a", 1), ("b", 1), ("a", 2)).with_columns(size=pl.Series([1, 2, 3]))

    assert find_live(added, frame()).rows() == [("b", 2), ("a", 3)]


def test_the_last_remove_of_a_file_counts():
    assert find_live(frame(("a", 2)), frame(("a", 1), ("a", 3), ("a", 2))).is_empty()
