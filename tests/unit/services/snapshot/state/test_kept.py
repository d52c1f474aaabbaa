from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.ports import LogFile
from gateway.services.snapshot.log.actions import FILES
from gateway.services.snapshot.state.kept import KeptSnapshots
from gateway.services.snapshot.state.snapshot import Metadata, Protocol, Snapshot
from tests.builders import STARTED_AT


def snapshot(files: int, version: int = 0) -> Snapshot:
    row = {
        "path": "a" * 50,
        "encoded": "a" * 50,
        "partitionValues": {},
        "size": 1,
        "hasDeletionVector": False,
    }
    return Snapshot(
        version=version,
        protocol=Protocol(min_reader_version=1),
        metadata=Metadata(id="t", schema_string="{}"),
        files=pl.DataFrame([row] * files, schema=FILES),
        size=files,
        anchor=LogFile("anchor", 1, STARTED_AT),
    )


TEN = snapshot(10)


def test_what_fits_is_kept():
    kept = KeptSnapshots(memory=2 * TEN.memory)
    kept.keep("a", TEN)
    kept.keep("b", TEN)

    assert kept.find("a") is TEN
    assert kept.find("b") is TEN
    assert kept.find("c") is None


def test_the_one_used_longest_ago_makes_room():
    kept = KeptSnapshots(memory=2 * TEN.memory)
    kept.keep("a", TEN)
    kept.keep("b", TEN)
    kept.find("a")
    kept.keep("c", TEN)

    assert kept.find("b") is None
    assert kept.find("a") is kept.find("c") is TEN


def test_a_newer_snapshot_takes_the_place_of_the_older():
    kept = KeptSnapshots(memory=TEN.memory)
    newer = snapshot(10, version=1)
    kept.keep("a", TEN)
    kept.keep("a", newer)

    assert kept.find("a") is newer


def test_one_that_can_never_fit_is_not_kept_and_drops_nothing():
    kept = KeptSnapshots(memory=TEN.memory)
    kept.keep("a", TEN)
    kept.keep("b", snapshot(1000))

    assert kept.find("b") is None
    assert kept.find("a") is TEN


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 40))))
def test_the_bound_always_holds(steps):
    kept = KeptSnapshots(memory=4 * TEN.memory)
    for key, files in steps:
        kept.keep(key, snapshot(files))

    remaining = [found for key in "abcd" if (found := kept.find(key))]
    assert sum(found.memory for found in remaining) <= 4 * TEN.memory
