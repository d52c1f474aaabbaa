from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

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


def test_what_queries_have_made_since_counts_when_a_table_is_asked_for_again():
    world = World(2 * TEN.memory)
    files = files_of(10, stock=True)
    world.keep(A, snapshot_of(files))
    world.keep(B)
    frame = files_of(1000).frame
    files.columns.get(["a"], 1000, lambda keys, offset, length: {"a": frame})
    assert world.knows(A, B) == [True, True]

    assert world.kept.ask(A) is not None
    assert not any(world.knows(B))


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
