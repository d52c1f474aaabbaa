from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.location import parse_location
from gateway.services.snapshot.log.listing import read_listing
from gateway.services.snapshot.state.kept import KeptSnapshots
from tests.builders import STARTED_AT
from tests.fakes.snapshot_metrics import FakeSnapshotMetrics
from tests.unit.services.snapshot.state.snapshots import anchor, files_of, snapshot_of

A, B, C, D = (parse_location(f"/tables/{name}") for name in "abcd")
TEN = snapshot_of(10)


class World:
    def __init__(self, memory: int) -> None:
        self.now = STARTED_AT
        self.metrics = FakeSnapshotMetrics()
        self.kept = KeptSnapshots(memory=memory, clock=lambda: self.now, metrics=self.metrics)

    def keep(self, location, snapshot=TEN):
        self.now += timedelta(seconds=1)
        self.kept.keep_latest(location, snapshot, self.now)

    def knows(self, *locations):
        return [self.kept.peek(location) is not None for location in locations]


@pytest.fixture
def world():
    return World(2 * TEN.memory)


def found(kept, location, version):
    return kept.find(location, version, anchor(version))


def test_what_fits_is_kept(world):
    world.keep(A)
    world.keep(B)

    assert world.kept.ask(A).snapshot is world.kept.ask(B).snapshot is TEN
    assert world.kept.ask(C) is None
    assert world.metrics.memory == (2, 2 * TEN.memory)


def test_the_one_asked_for_longest_ago_makes_room(world):
    world.keep(A)
    world.keep(B)
    world.kept.find(A, 0, TEN.anchor)
    world.keep(C)

    assert world.knows(A, B, C) == [True, False, True]


def test_a_table_asked_for_again_outlives_those_asked_for_once(world):
    world.keep(A)
    world.kept.ask(A)
    for other in (B, C, D):
        world.keep(other)

    assert world.knows(A, B, C, D) == [True, False, False, True]


def test_a_hot_table_turns_cold_when_nobody_asks_for_it(world):
    world.keep(A)
    world.kept.ask(A)
    world.now += timedelta(minutes=10, seconds=1)
    world.keep(B)
    world.keep(C)

    assert world.knows(A, B, C) == [False, True, True]


def test_among_hot_tables_the_one_asked_for_longest_ago_makes_room(world):
    for table in (A, B):
        world.keep(table)
        world.kept.ask(table)
    world.keep(C)

    assert world.knows(A, B, C) == [False, True, True]


def test_reading_all_of_the_history_leaves_the_hot_tables_alone(world):
    for table in (A, B):
        world.keep(table)
        world.kept.ask(table)
    for version in range(50):
        world.kept.keep_version(A, snapshot_of(10, version))

    assert world.knows(A, B) == [True, True]
    assert world.metrics.memory == (2, 2 * TEN.memory)


def test_a_version_takes_the_place_of_a_cold_table_and_of_other_versions(world):
    world.keep(A)
    world.keep(B)
    for version in (3, 4, 5):
        world.kept.keep_version(A, snapshot_of(10, version))

    assert world.knows(A, B) == [False, False]
    assert [found(world.kept, A, version) is not None for version in (3, 4, 5)] == [False, True, True]


def test_of_one_table_so_many_versions_are_kept():
    world = World(1000 * TEN.memory)
    for version in range(40):
        world.kept.keep_version(A, snapshot_of(10, version))

    assert [version for version in range(40) if found(world.kept, A, version)] == list(range(24, 40))
    assert world.metrics.memory[0] == 16


def test_a_newer_snapshot_takes_the_place_of_the_older_which_is_found_by_its_number(world):
    newer = snapshot_of(10, 1)
    world.keep(A)
    world.keep(A, newer)

    assert world.kept.ask(A).snapshot is newer
    assert found(world.kept, A, 0) is TEN
    assert world.metrics.memory == (2, newer.memory + TEN.memory)


def test_a_refreshed_table_is_as_hot_as_it_was(world):
    world.keep(A)
    world.kept.ask(A)
    world.keep(A, snapshot_of(10, 1))
    world.keep(B)
    world.keep(C)

    assert world.knows(A, B, C) == [True, False, True]


def test_the_version_before_is_found_as_long_as_it_shares_its_rows():
    world = World(10 * 1024 * 1024)
    files = files_of(5000, stock=True)
    older, newer = snapshot_of(files, 0), snapshot_of(replace(files, grown=10), 1)
    world.keep(A, older)
    world.keep(A, newer)
    assert found(world.kept, A, 0) is older
    assert world.metrics.memory == (2, newer.memory + older.bare_memory)

    world.keep(A, snapshot_of(5000, 2))
    assert found(world.kept, A, 1) is None


def test_a_slower_reading_of_an_older_listing_does_not_replace_a_newer_one(world):
    world.kept.keep_latest(A, snapshot_of(10, 2), STARTED_AT + timedelta(seconds=2))
    world.kept.keep_latest(A, snapshot_of(10, 1), STARTED_AT + timedelta(seconds=1))

    assert world.kept.ask(A).snapshot.version == 2


def test_a_version_is_found_only_where_the_log_has_the_same_file_for_it(world):
    world.keep(A, snapshot_of(10, 1))
    world.kept.keep_version(A, snapshot_of(10, 0))

    assert found(world.kept, A, 0).version == 0
    assert found(world.kept, A, 1).version == 1
    other = replace(anchor(0), size=2)
    assert world.kept.find(A, 0, other) is world.kept.find(A, 0, None) is found(world.kept, B, 0) is None


def test_the_nearest_is_the_newest_before_a_version_of_the_same_table():
    world = World(10 * TEN.memory)
    for version in (1, 3, 5):
        world.kept.keep_version(A, snapshot_of(10, version))
    world.keep(A, snapshot_of(10, 7))
    listing = read_listing(anchor(version) for version in range(9))

    def nearest(version):
        snapshot = world.kept.nearest(A, version, listing)
        return None if snapshot is None else snapshot.version

    assert [nearest(version) for version in (1, 2, 3, 5, 7, 8)] == [None, 1, 1, 3, 5, 7]
    made_anew = read_listing(replace(anchor(version), size=2) for version in range(9))
    assert world.kept.nearest(A, 8, made_anew) is None
    assert world.kept.nearest(B, 8, listing) is None


def test_one_that_can_never_fit_is_not_kept_and_drops_nothing_but_what_it_replaces(world):
    world.keep(A)
    world.keep(B)
    world.keep(B, snapshot_of(10_000))

    assert world.knows(A, B) == [True, False]


def made_columns(files, rows):
    """Have a query make a column for files, of so many rows' size."""
    frame = files_of(rows).frame
    files.columns.get(["a"], rows, lambda keys, offset, length: {"a": frame})


def test_what_queries_have_made_counts_when_it_is_measured():
    world = World(100 * TEN.memory)
    files = files_of(10, stock=True)
    latest = snapshot_of(files)
    world.keep(A, latest)
    before = world.metrics.memory[1]
    made_columns(files, 100)
    world.kept.measure(A, latest)

    assert world.metrics.memory == (1, before + files.columns.memory)


def test_what_queries_have_made_of_a_past_version_counts_too():
    world = World(100 * TEN.memory)
    files = files_of(10, stock=True)
    past = snapshot_of(files, 1)
    world.kept.keep_version(A, past)
    before = world.metrics.memory[1]
    made_columns(files, 100)
    world.kept.measure(A, past)

    assert world.metrics.memory == (1, before + files.columns.memory)


def test_a_snapshot_that_is_not_kept_does_not_count(world):
    world.keep(A)
    files = files_of(10, stock=True)
    made_columns(files, 1000)
    world.kept.measure(A, snapshot_of(files))
    world.kept.measure(B, snapshot_of(files))

    assert world.metrics.memory == (1, TEN.memory)


@pytest.mark.parametrize("count", ["measure", "ask"])
def test_what_queries_have_made_goes_before_what_was_asked_for_lately(count):
    world = World(2 * TEN.memory)
    files = files_of(10, stock=True)
    latest = snapshot_of(files)
    world.keep(A, latest)
    world.keep(B)
    made_columns(files, 1000)
    if count == "ask":
        world.kept.ask(A)
    else:
        world.kept.measure(A, latest)

    assert world.knows(A, B) == [True, True]
    assert files.columns.memory == 0
    assert world.metrics.memory[1] <= 2 * TEN.memory


def test_what_nobody_has_asked_for_in_a_while_goes_before_what_queries_have_made():
    files = files_of(10, stock=True)
    world = World(2 * TEN.memory)
    world.keep(B)
    world.now += timedelta(minutes=10, seconds=1)
    latest = snapshot_of(files)
    world.keep(A, latest)
    made_columns(files, 20)
    world.kept.measure(A, latest)

    assert world.knows(A, B) == [True, False]
    assert files.columns.memory > 0


def test_a_snapshot_that_fits_without_what_queries_have_made_is_kept_without(world):
    files = files_of(10, stock=True)
    made_columns(files, 1000)
    world.keep(A, snapshot_of(files))

    assert world.knows(A) == [True]
    assert files.columns.memory == 0


locations = st.sampled_from([A, B, C])


@settings(deadline=None)
@given(st.lists(st.tuples(locations, st.sampled_from(["latest", "version", "ask"]), st.integers(1, 40))))
def test_the_bound_always_holds(steps):
    world = World(4 * TEN.memory)
    stock = files_of(20, stock=True)
    for number, (location, step, files) in enumerate(steps):
        snapshot = snapshot_of(replace(stock, grown=files) if files > 30 else files, number)
        if step == "latest":
            world.keep(location, snapshot)
        elif step == "version":
            world.kept.keep_version(location, snapshot)
        else:
            world.kept.ask(location)
        assert world.metrics.memory[1] <= 4 * TEN.memory


def test_an_order_counts_and_goes_before_what_was_asked_for_lately():
    world = World(2 * TEN.memory + 40)
    files = files_of(10, stock=True)
    latest = snapshot_of(files)
    world.keep(A, latest)
    world.keep(B)
    before = world.metrics.memory[1]
    files.columns.get_order(lambda: pl.Series(range(10), dtype=pl.UInt32))
    world.kept.measure(A, latest)
    assert world.metrics.memory[1] == before + 40

    files.columns.clear()
    files.columns.get_order(lambda: pl.Series(range(20), dtype=pl.UInt32))
    world.kept.measure(A, latest)
    assert world.knows(A, B) == [True, True]
    assert files.columns.order_memory == 0
