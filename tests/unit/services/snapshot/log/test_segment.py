from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.log import checkpoint_name, commit_name, compaction_name, version_prefix
from gateway.errors import Unsupported
from gateway.ports import LogFile
from gateway.services.snapshot.log.listing import Compaction, read_listing
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.segment import find_commits, find_segment, keeps_removes
from tests.builders import STARTED_AT
from tests.cases import each_case


def file(name: str, *, days: float = 0, size: int = 1) -> LogFile:
    return LogFile(name, size, STARTED_AT + timedelta(days=days))


def listing_of(*names: str | LogFile):
    return read_listing(name if isinstance(name, LogFile) else file(name) for name in names)


def names_of(steps):
    return [(step.file if isinstance(step, Compaction) else step).name for step in steps]


def commits(*versions: int):
    return [commit_name(version) for version in versions]


def test_without_a_checkpoint_all_commits_are_read():
    segment = find_segment(listing_of(*commits(0, 1, 2)), 2)

    assert segment.checkpoint == ()
    assert names_of(segment.steps) == commits(0, 1, 2)


def test_an_older_version_takes_the_commits_up_to_it():
    segment = find_segment(listing_of(*commits(0, 1, 2)), 1)

    assert names_of(segment.steps) == commits(0, 1)
    assert segment.anchor.name == commit_name(1)


def test_the_newest_checkpoint_that_is_not_too_new_is_the_start():
    listing = listing_of(*commits(3, 4, 5, 6), checkpoint_name(2), checkpoint_name(4), checkpoint_name(6))

    segment = find_segment(listing, 5)

    assert names_of(segment.checkpoint) == [checkpoint_name(4)]
    assert names_of(segment.steps) == commits(5)


def test_the_parts_of_a_checkpoint_are_read_in_order():
    parts = [checkpoint_name(4, part, 3) for part in (3, 1, 2)]

    segment = find_segment(listing_of(*commits(4), *parts), 4)

    assert names_of(segment.checkpoint) == sorted(parts)
    assert segment.steps == ()


def test_a_checkpoint_that_is_of_no_use_gives_way_to_another_of_its_version():
    other = f"{version_prefix(4)}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    listing = listing_of(*commits(0, 1, 2, 3, 4), checkpoint_name(4), other, checkpoint_name(2))
    unusable = {file(checkpoint_name(4))}

    assert names_of(find_segment(listing, 4, unusable).checkpoint) == [other]
    assert names_of(find_segment(listing, 4, {*unusable, file(other)}).checkpoint) == [checkpoint_name(2)]


def test_a_checkpoint_with_one_bad_part_is_of_no_use():
    parts = [checkpoint_name(1, part, 2) for part in (1, 2)]

    segment = find_segment(listing_of(*commits(0, 1), *parts), 1, {file(parts[1])})

    assert segment.checkpoint == ()
    assert names_of(segment.steps) == commits(0, 1)


def test_a_name_that_claims_a_far_version_costs_nothing():
    listing = listing_of(*commits(0, 1, 2**62))

    with pytest.raises(Unsupported, match=r"lacks 00000000000000000002\.json"):
        find_segment(listing, listing.latest)
    assert find_commits(listing, 0, listing.latest) is None


def test_a_version_may_be_known_by_its_checkpoint_alone():
    segment = find_segment(listing_of(checkpoint_name(7)), 7)

    assert segment.anchor.name == checkpoint_name(7)
    assert segment.steps == ()


def test_a_gap_is_named():
    with pytest.raises(Unsupported, match=r"lacks 00000000000000000002\.json"):
        find_segment(listing_of(*commits(0, 1, 3)), 3)


def test_a_version_that_is_not_there_is_missing():
    with pytest.raises(Unsupported, match=r"lacks 00000000000000000002\.json"):
        find_segment(listing_of(*commits(0, 1)), 2)


def test_a_gap_before_the_checkpoint_does_not_matter():
    segment = find_segment(listing_of(*commits(0, 3, 4), checkpoint_name(3)), 4)

    assert names_of(segment.steps) == commits(4)


def test_a_log_without_its_beginning_is_refused():
    with pytest.raises(Unsupported, match=r"lacks 00000000000000000000\.json"):
        find_segment(listing_of(*commits(5, 6)), 6)


def test_commits_lead_from_one_version_to_the_next():
    assert names_of(find_commits(listing_of(*commits(3, 4, 5)), 3, 5) or ()) == commits(4, 5)


def test_commits_over_a_gap_lead_nowhere():
    assert find_commits(listing_of(*commits(3, 5)), 3, 5) is None


def test_a_compaction_is_read_in_place_of_its_commits():
    listing = listing_of(*commits(*range(6)), compaction_name(1, 3), compaction_name(1, 2))

    assert names_of(find_segment(listing, 5).steps) == [
        *commits(0),
        compaction_name(1, 3),
        *commits(4, 5),
    ]
    assert names_of(find_segment(listing, 2).steps) == [*commits(0), compaction_name(1, 2)]


def test_a_compaction_that_begins_before_the_checkpoint_is_left_alone():
    listing = listing_of(*commits(*range(5)), checkpoint_name(2), compaction_name(1, 4))

    assert names_of(find_segment(listing, 4).steps) == commits(3, 4)


@pytest.mark.parametrize(
    "compaction",
    [
        file(compaction_name(1, 3), size=0),
        file(compaction_name(1, 3), days=1),
        file(compaction_name(1, 3), days=30),
    ],
    ids=["empty", "a day later", "a month later"],
)
def test_a_compaction_that_may_lack_removes_is_left_alone(compaction):
    listing = listing_of(*commits(*range(5)), compaction)

    assert names_of(find_segment(listing, 4).steps) == commits(0, 1, 2, 3, 4)


@each_case(
    ("retention", "kept"),
    [
        (None, True),
        ("interval 7 days", True),
        ("interval 1 week", True),
        ("INTERVAL 1 DAY", True),
        ("1 days", True),
        ("interval 0 days", False),
        ("interval 23 hours", False),
        ("interval 0 seconds", False),
        ("soon", False),
    ],
)
def test_a_table_that_soon_forgets_its_removes_has_no_compaction_to_trust(retention, kept):
    configuration = {} if retention is None else {"delta.deletedFileRetentionDuration": retention}

    assert keeps_removes(Metadata(id="t", schema_string="{}", configuration=configuration)) is kept
    assert not keeps_removes(None)


@settings(deadline=None)
@given(
    st.sets(st.integers(0, 12)),
    st.sets(st.integers(0, 12)),
    st.sets(st.tuples(st.integers(0, 11), st.integers(1, 12)).filter(lambda pair: pair[0] < pair[1])),
    st.integers(0, 12),
)
def test_a_segment_covers_every_version_once(committed, checkpoints, compactions, version):
    names = [*commits(*committed), *(checkpoint_name(known) for known in checkpoints)]
    listing = listing_of(*names, *(compaction_name(first, last) for first, last in compactions))
    start = max((known for known in checkpoints if known <= version), default=-1)
    whole = set(range(start + 1, version + 1)) <= committed

    try:
        segment = find_segment(listing, version)
    except Unsupported:
        assert not whole
        return
    covered = [versions_of(step) for step in segment.steps]
    assert [version for each in covered for version in each] == list(range(start + 1, version + 1))
    assert bool(segment.checkpoint) == (start >= 0)


def versions_of(step) -> range:
    if isinstance(step, Compaction):
        return range(step.first, step.last + 1)
    return range(int(step.name[:20]), int(step.name[:20]) + 1)
