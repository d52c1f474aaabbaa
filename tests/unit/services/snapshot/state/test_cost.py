from __future__ import annotations

from gateway.domain.log import checkpoint_name, commit_name
from gateway.ports import LogFile
from gateway.services.snapshot.log.listing import read_listing
from gateway.services.snapshot.state.cost import are_steps_cheaper, cost_of_steps, cost_of_version
from tests.builders import STARTED_AT

V2 = "00000000000000000004.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet"


def listing_of(**sizes: int):
    names = {"v2": V2}
    names |= {f"c{version}": commit_name(version) for version in range(10)}
    names |= {f"p{version}": checkpoint_name(version) for version in range(10)}
    return read_listing(LogFile(names[name], size, STARTED_AT) for name, size in sizes.items())


def test_a_version_costs_its_newest_checkpoint_and_the_commits_after_it():
    listing = listing_of(c0=1, c1=2, c2=4, p2=100, c3=8, c4=16, p4=200)

    assert cost_of_version(listing, 1) == 3
    assert cost_of_version(listing, 3) == 108
    assert cost_of_version(listing, 4) == 200


def test_steps_cost_the_commits_after_a_version():
    assert cost_of_steps(listing_of(c0=1, c1=2, c2=4, p2=100, c3=8), 0, 2) == 6


def test_steps_are_cheaper_where_no_checkpoint_is_on_the_way():
    listing = listing_of(c0=1, p0=1, c1=1000, c2=1000)

    assert are_steps_cheaper(listing, 0, 2)


def test_steps_are_cheaper_up_to_the_size_of_the_checkpoint_on_the_way():
    assert are_steps_cheaper(listing_of(c1=40, c2=60, p2=100, c3=500), 0, 3)
    assert not are_steps_cheaper(listing_of(c1=40, c2=61, p2=100, c3=500), 0, 3)


def test_steps_that_are_not_all_there_are_not_cheaper_than_a_checkpoint():
    assert not are_steps_cheaper(listing_of(c1=1, p2=100, c3=1), 0, 3)


def test_a_checkpoint_after_the_version_does_not_count():
    assert are_steps_cheaper(listing_of(c1=1000, c2=1, p2=10), 0, 1)


def test_a_checkpoint_that_does_not_tell_its_size_is_taken_for_a_large_one():
    assert are_steps_cheaper(listing_of(c3=1000, c4=1000, v2=10), 2, 4)
    assert cost_of_version(listing_of(c4=1, v2=10), 4) > 1024 * 1024
