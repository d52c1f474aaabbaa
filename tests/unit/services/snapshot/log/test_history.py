from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.log import checkpoint_name, commit_name
from gateway.domain.window import EPOCH
from gateway.errors import InvalidArgument
from gateway.ports import LogFile
from gateway.services.snapshot.log.history import read_history
from gateway.services.snapshot.log.segment import read_listing


def at(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def history_of(times: dict[int, int]):
    listing = read_listing(LogFile(commit_name(version), 1, at(ms)) for version, ms in times.items())
    history = read_history(listing)
    assert history is not None
    return history


def test_a_time_between_two_commits_is_the_earlier_version():
    history = history_of({0: 1000, 1: 2000, 2: 3000})

    assert history.version_as_of(at(2999)) == 1
    assert history.version_as_of(at(2000)) == 1
    assert history.version_as_of(at(3000)) == 2


def test_a_time_before_the_first_commit_has_no_version():
    with pytest.raises(InvalidArgument, match=r"greater than or equal to 1970-01-01T00:00:01\.000Z"):
        history_of({0: 1000, 1: 2000}).version_as_of(at(999))


@pytest.mark.parametrize("lookup", ["version_as_of", "version_from"])
def test_a_time_after_the_last_commit_has_no_version(lookup):
    with pytest.raises(InvalidArgument, match="is after the latest available version 1"):
        getattr(history_of({0: 1000, 1: 2000}), lookup)(at(2001))


def test_the_first_version_from_a_time_on_may_be_the_first_of_all():
    history = history_of({0: 1000, 1: 2000})

    assert history.version_from(at(0)) == 0
    assert history.version_from(at(1000)) == 0
    assert history.version_from(at(1001)) == 1


@pytest.mark.parametrize(
    ("since", "first", "timestamps"),
    [(0, 1, (1000, 2000, 3000)), (1, 1, (1000, 2000, 3000)), (2, 2, (2000, 3000)), (9, 3, (3000,))],
)
def test_a_part_of_a_history_begins_with_a_version_that_is_there(since, first, timestamps):
    history = history_of({1: 1000, 2: 2000, 3: 3000}).since(since)

    assert (history.first, history.timestamps, history.latest) == (first, timestamps, 3)


def test_a_commit_whose_file_is_older_than_the_one_before_counts_as_later():
    history = history_of({0: 5000, 1: 3000, 2: 4000, 3: 9000})

    assert history.timestamps == (5000, 5001, 5002, 9000)


def test_only_the_commits_since_the_last_gap_count():
    history = history_of({0: 1000, 2: 3000, 3: 4000})

    assert history.first == 2
    assert history.timestamp_of(0) is None
    assert history.timestamp_of(3) == 4000


def test_a_version_known_by_a_checkpoint_alone_has_no_history():
    assert read_history(read_listing([LogFile(checkpoint_name(3), 1, at(0))])) is None


def test_a_time_in_another_zone_is_the_same_time():
    history = history_of({0: 1000, 1: 2000})
    elsewhere = at(2000).astimezone(UTC).astimezone()

    assert history.version_as_of(elsewhere) == 1


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**13), min_size=1, max_size=30), st.integers(0, 10**13))
def test_lookups_agree_with_a_search_through_the_list(times, asked):
    history = history_of(dict(enumerate(times)))
    known = list(enumerate(history.timestamps))

    assert list(history.timestamps) == sorted(set(history.timestamps))
    before = [version for version, ms in known if ms <= asked]
    after = [version for version, ms in known if ms >= asked]
    if before and after:
        assert history.version_as_of(at(asked)) == before[-1]
    if after:
        assert history.version_from(at(asked)) == after[0]
