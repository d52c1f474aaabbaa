from __future__ import annotations

import json
import random
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.log import checkpoint_name, commit_name, compaction_name, version_prefix
from gateway.errors import InvalidArgument, Unavailable
from gateway.ports import LogFile
from gateway.services.snapshot.log.listing import list_log, list_recent, look_through, read_listing
from tests.cases import each_case
from tests.fakes.faulty_log_reader import STARTED_AT, FaultyLogReader
from tests.hypothesis_profiles import examples

_UUIDS = ("80a083e8-7026-4e79-81be-64bd76c43a11", "3a0d65cd-4056-49b8-937b-95f9e3ee90e5")


def v2_name(version: int, uuid: str = _UUIDS[0], suffix: str = "json") -> str:
    return f"{version_prefix(version)}.checkpoint.{uuid}.{suffix}"


def listing_of(*names: str):
    return read_listing(LogFile(name, 1, STARTED_AT) for name in names)


def names_of(checkpoints):
    return [[file.name for file in checkpoint] for checkpoint in checkpoints]


def reader_with(*names: str, hint: object = None) -> FaultyLogReader:
    reader = FaultyLogReader()
    for name in names:
        reader.put(name, b"")
    if hint is not None:
        reader.put("_last_checkpoint", hint if isinstance(hint, bytes) else json.dumps(hint).encode())
    return reader


def test_an_empty_log_is_missing_files():
    with pytest.raises(InvalidArgument, match="table files missing") as caught:
        _ = listing_of("_last_checkpoint").latest

    assert caught.value.error_code == "RESOURCE_DOES_NOT_EXIST"


def test_the_latest_version_is_that_of_the_newest_commit_or_checkpoint():
    assert listing_of(commit_name(3), checkpoint_name(2)).latest == 3
    assert listing_of(commit_name(3), checkpoint_name(4)).latest == 4
    assert listing_of(commit_name(3), v2_name(5)).latest == 5


def test_a_compaction_and_an_incomplete_checkpoint_make_no_version():
    assert listing_of(commit_name(3), compaction_name(2, 9), checkpoint_name(8, 1, 2)).latest == 3


@each_case(
    ("versions", "has_gap"),
    [([], False), ([3], False), ([3, 4, 5], False), ([3, 5], True), ([0, 1, 9], True)],
)
def test_a_gap_is_a_commit_that_is_missing_between_others(versions, has_gap):
    names = [commit_name(version) for version in versions]

    assert listing_of(*names, checkpoint_name(20)).has_gap is has_gap


def test_a_version_may_have_checkpoints_of_every_kind():
    parts = [checkpoint_name(4, part, 2) for part in (2, 1)]

    listing = listing_of(v2_name(4, _UUIDS[0], "parquet"), *parts, v2_name(4, _UUIDS[1]), checkpoint_name(4))

    assert names_of(listing.checkpoints[4]) == [
        [checkpoint_name(4)],
        sorted(parts),
        [v2_name(4, _UUIDS[1])],
        [v2_name(4, _UUIDS[0], "parquet")],
    ]


def test_a_checkpoint_counts_when_all_its_parts_are_there():
    three = [checkpoint_name(4, part, 3) for part in (1, 3)]
    two = [checkpoint_name(4, part, 2) for part in (1, 2)]

    assert names_of(listing_of(*three, *two).checkpoints[4]) == [two]
    assert listing_of(*three).checkpoints == {}


@each_case("parts", [(0, 1), (0, 2), (2, 3), (1, 9_999_999_999)])
def test_a_name_that_claims_parts_that_cannot_be_counts_for_nothing(parts):
    names = [f"{version_prefix(4)}.checkpoint.{part:010d}.0000000002.parquet" for part in parts]

    assert listing_of(*names).checkpoints == {}


def test_compactions_are_found_by_their_first_version_the_longest_first():
    listing = listing_of(compaction_name(1, 3), compaction_name(1, 9), compaction_name(2, 4))

    assert [found.last for found in listing.compactions[1]] == [9, 3]
    assert [found.last for found in listing.compactions[2]] == [4]


def test_a_version_is_known_by_its_commit_or_else_by_its_checkpoint():
    listing = listing_of(commit_name(3), checkpoint_name(3), v2_name(4))

    assert [getattr(listing.find_anchor(version), "name", None) for version in (3, 4, 5)] == [
        commit_name(3),
        v2_name(4),
        None,
    ]


@settings(max_examples=examples(0.5))
@given(st.randoms(use_true_random=False))
def test_the_order_of_a_listing_and_names_that_come_twice_change_nothing(chance: random.Random):
    names = [commit_name(n) for n in range(6)] + [checkpoint_name(2), v2_name(2), v2_name(2, _UUIDS[1])]
    names += [checkpoint_name(4, part, 3) for part in (1, 2, 3)] + [compaction_name(0, 1)]
    shuffled = [*names, *chance.sample(names, 3)]
    chance.shuffle(shuffled)

    assert listing_of(*shuffled) == listing_of(*sorted(names))


async def test_a_long_listing_is_looked_through_off_the_event_loop():
    reader = reader_with(*(commit_name(n) for n in range(1500)))

    assert (await list_log(reader.log)).latest == 1499


async def test_the_hint_shortens_the_listing():
    reader = reader_with(
        *(commit_name(n) for n in range(9)), checkpoint_name(6), hint={"version": 6, "size": 1}
    )

    listing = await list_recent(reader.log)

    assert reader.listed == [version_prefix(6)]
    assert sorted(listing.commits) == [6, 7, 8]
    assert list(listing.checkpoints) == [6]


@each_case(
    "hint",
    [
        None,
        b"",
        b"nonsense",
        b"\xff",
        b"[1]",
        b"6",
        b'{"version":"6"}',
        b'{"version":6.0}',
        b'{"version":true}',
        b'{"version":null}',
        b'{"version":-1}',
        b'{"version":99999999999999999999999}',
        b'{"version":5}',
        b'{"version":7}',
        b'{"version":4000}',
        b"[" * 100_000,
    ],
)
async def test_a_hint_that_leads_nowhere_costs_a_listing_and_no_answer(hint):
    reader = reader_with(*(commit_name(n) for n in range(9)), checkpoint_name(6), hint=hint)

    listing = await list_recent(reader.log)

    assert (listing.latest, sorted(listing.commits)) == (8, list(range(9)))


async def test_a_hint_that_cannot_be_read_is_done_without():
    reader = reader_with(commit_name(0), hint={"version": 6})
    reader.failures["_last_checkpoint"] = [Unavailable("busy")]

    assert (await list_recent(reader.log)).latest == 0


async def test_a_stale_hint_costs_a_longer_listing():
    reader = reader_with(
        *(commit_name(n) for n in range(9)), checkpoint_name(2), checkpoint_name(6), hint={"version": 2}
    )

    listing = await list_recent(reader.log)

    assert sorted(listing.checkpoints) == [2, 6]
    assert listing.latest == 8


@pytest.mark.parametrize(("commits", "is_aside"), [(999, False), (1000, True)])
async def test_a_listing_of_many_files_is_looked_through_aside(commits, is_aside):
    listing = listing_of(*map(commit_name, range(commits)))

    def look(seen, number):
        return seen is listing, number, threading.get_ident() != this_thread

    this_thread = threading.get_ident()
    assert await look_through(FaultyLogReader().log, listing, look, 7) == (True, 7, is_aside)


async def test_what_a_look_through_a_listing_raises_is_raised():
    for count in (1, 1000):
        listing = listing_of(*map(commit_name, range(count)))
        with pytest.raises(InvalidArgument, match="as it was"):
            await look_through(FaultyLogReader().log, listing, _refuse)


def _refuse(_: object) -> None:
    raise InvalidArgument("as it was")
