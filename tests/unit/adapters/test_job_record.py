from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.adapters.job_record import from_record, new_marker_key, read_marker, record_key, to_record
from gateway.domain.job import Job, JobKey, JobKind, JobState
from gateway.domain.state_key import is_state_key

TIMES = st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1)).map(  # noqa: DTZ001
    lambda at: at.replace(tzinfo=UTC)
)
KEYS = st.builds(JobKey, kind=st.sampled_from(JobKind), subject=st.text(st.characters(codec="utf-8")))
NUMBERS = st.integers(min_value=0, max_value=10**9)
JOBS = st.builds(
    Job,
    key=KEYS,
    sequence=NUMBERS,
    state=st.sampled_from(JobState),
    parameters=st.dictionaries(st.text(), st.text(st.characters(codec="utf-8"))),
    requested_at=TIMES,
    started_at=st.none() | TIMES,
    finished_at=st.none() | TIMES,
    done_sequence=NUMBERS,
    claimed_sequence=NUMBERS,
    attempts=NUMBERS,
    error=st.text(st.characters(codec="utf-8")),
    worker=st.text(st.characters(codec="utf-8")),
    leased_until=st.none() | TIMES,
    not_before=st.none() | TIMES,
)


@given(JOBS)
def test_job_is_read_as_it_was_written(job):
    assert from_record(to_record(job)) == job


@given(KEYS, st.integers(min_value=1, max_value=10**9))
def test_marker_leads_to_its_record(key, sequence):
    marker = new_marker_key(key, sequence)

    assert is_state_key(marker)
    assert is_state_key(record_key(key))
    assert read_marker(marker) == (record_key(key), sequence)
    assert new_marker_key(key, sequence) != marker


@given(st.binary() | st.text().map(str.encode))
def test_what_is_no_record_is_none(content):
    assert from_record(content) is None


DAMAGE: st.SearchStrategy[Any] = st.sampled_from(
    [
        float("inf"),
        float("nan"),
        10**400,
        -1,
        None,
        [],
        {},
        "",
        "\ud800",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
        "9999-12-31T23:59:59+00:00",
    ]
)


@given(JOBS, st.data())
def test_record_that_is_damaged_is_none_or_can_be_worked_with(job, data):
    record = json.loads(to_record(job))
    record[data.draw(st.sampled_from(sorted(record)))] = data.draw(DAMAGE)

    found = from_record(json.dumps(record).encode())

    if found is not None:
        assert from_record(to_record(found)) == found
        assert is_state_key(new_marker_key(found.key, found.sequence + 1))
        for at in (found.requested_at, found.started_at, found.finished_at, found.leased_until):
            assert at is None or at + timedelta(days=1) > at


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"a":' * 100_000])
def test_record_that_is_nested_too_deep_is_none(content):
    assert from_record(content) is None


@pytest.mark.parametrize("key", ["queue/view/abc", "queue/view/abc.x.1", "queue/view/abc..1"])
def test_what_is_no_marker_is_none(key):
    assert read_marker(key) is None


def test_record_of_a_later_version_may_hold_more():
    job = Job(key=JobKey(kind=JobKind.USAGE), sequence=1, state=JobState.DONE, requested_at=datetime.now(UTC))
    content = to_record(job).replace(b'"format": 1', b'"format": 1, "more": [1]')

    assert from_record(content) == job
    assert from_record(content.replace(b"+00:00", b"")) is None


def test_times_are_kept_in_utc():
    at = datetime(2026, 1, 1, tzinfo=UTC).astimezone(tz=None) + timedelta(microseconds=1)
    job = Job(key=JobKey(kind=JobKind.USAGE), sequence=1, state=JobState.DONE, requested_at=at)

    assert b"+00:00" in to_record(job)
