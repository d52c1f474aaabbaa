from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.log import checkpoint_name, commit_name
from gateway.errors import InvalidArgument, Unsupported
from gateway.ports import LogFile
from gateway.services.snapshot.log.segment import find_segment, find_steps, read_listing
from tests.builders import STARTED_AT

_V2 = "00000000000000000003.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet"


def listing_of(*names: str):
    return read_listing(LogFile(name, 1, STARTED_AT) for name in names)


def names_of(files):
    return [file.name for file in files]


def commits(*versions: int):
    return [commit_name(version) for version in versions]


def test_without_a_checkpoint_all_commits_are_read():
    segment = find_segment(listing_of(*commits(0, 1, 2)), 2)

    assert segment.checkpoint == ()
    assert names_of(segment.commits) == commits(0, 1, 2)


def test_an_older_version_takes_the_commits_up_to_it():
    segment = find_segment(listing_of(*commits(0, 1, 2)), 1)

    assert names_of(segment.commits) == commits(0, 1)
    assert segment.anchor.name == commit_name(1)


def test_the_newest_checkpoint_that_is_not_too_new_is_the_start():
    listing = listing_of(*commits(3, 4, 5, 6), checkpoint_name(2), checkpoint_name(4), checkpoint_name(6))

    segment = find_segment(listing, 5)

    assert names_of(segment.checkpoint) == [checkpoint_name(4)]
    assert names_of(segment.commits) == commits(5)


def test_the_parts_of_a_checkpoint_are_read_in_order():
    parts = [checkpoint_name(4, part, 3) for part in (3, 1, 2)]

    segment = find_segment(listing_of(*commits(4), *parts), 4)

    assert names_of(segment.checkpoint) == sorted(parts)
    assert segment.commits == ()


def test_a_checkpoint_that_lacks_a_part_is_passed_over():
    parts = [checkpoint_name(4, part, 3) for part in (1, 3)]

    segment = find_segment(listing_of(*commits(0, 1, 2, 3, 4), *parts, checkpoint_name(2)), 4)

    assert names_of(segment.checkpoint) == [checkpoint_name(2)]


def test_a_name_that_claims_countless_parts_costs_nothing():
    listing = listing_of(*commits(0), checkpoint_name(0, 1, 9_999_999_999))

    assert find_segment(listing, 0).checkpoint == ()


def test_a_name_that_claims_a_far_version_costs_nothing():
    listing = listing_of(*commits(0, 1, 2**62))

    with pytest.raises(Unsupported, match=r"lacks 00000000000000000002\.json"):
        find_segment(listing, listing.latest)


def test_a_version_may_be_known_by_its_checkpoint_alone():
    segment = find_segment(listing_of(checkpoint_name(7)), 7)

    assert segment.anchor.name == checkpoint_name(7)
    assert segment.commits == ()


def test_a_gap_is_named():
    with pytest.raises(Unsupported, match=r"lacks 00000000000000000002\.json"):
        find_segment(listing_of(*commits(0, 1, 3)), 3)


def test_a_gap_before_the_checkpoint_does_not_matter():
    segment = find_segment(listing_of(*commits(0, 3, 4), checkpoint_name(3)), 4)

    assert names_of(segment.commits) == commits(4)


def test_a_log_without_its_beginning_is_refused():
    with pytest.raises(Unsupported, match=r"lacks 00000000000000000000\.json"):
        find_segment(listing_of(*commits(5, 6)), 6)


def test_a_log_that_needs_its_v2_checkpoint_is_refused_in_so_many_words():
    with pytest.raises(Unsupported, match="V2 checkpoints are not supported"):
        find_segment(listing_of(*commits(3, 4), _V2), 4)


def test_a_v2_checkpoint_that_is_not_needed_is_passed_over():
    segment = find_segment(listing_of(*commits(0, 1, 2, 3, 4), _V2), 4)

    assert names_of(segment.commits) == commits(0, 1, 2, 3, 4)


def test_an_empty_log_is_missing_files():
    with pytest.raises(InvalidArgument, match="table files missing") as caught:
        _ = listing_of("_last_checkpoint").latest

    assert caught.value.error_code == "RESOURCE_DOES_NOT_EXIST"


def test_steps_lead_from_one_version_to_the_next():
    steps = find_steps(listing_of(*commits(3, 4, 5)), 3, 5)

    assert steps is not None
    assert names_of(steps.commits) == commits(4, 5)


def test_steps_over_a_gap_lead_nowhere():
    assert find_steps(listing_of(*commits(3, 5)), 3, 5) is None


@settings(deadline=None)
@given(
    st.sets(st.integers(0, 12)),
    st.sets(st.integers(0, 12)),
    st.integers(0, 12),
)
def test_a_segment_reaches_its_version_without_a_gap(committed, checkpoints, version):
    listing = listing_of(*commits(*committed), *(checkpoint_name(known) for known in checkpoints))
    start = max((known for known in checkpoints if known <= version), default=-1)
    whole = set(range(start + 1, version + 1)) <= committed

    if whole:
        segment = find_segment(listing, version)
        assert names_of(segment.commits) == commits(*range(start + 1, version + 1))
        assert bool(segment.checkpoint) == (start >= 0)
    else:
        with pytest.raises(Unsupported):
            find_segment(listing, version)
