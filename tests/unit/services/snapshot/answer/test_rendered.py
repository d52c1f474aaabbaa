from __future__ import annotations

import pytest

from gateway.services.snapshot.answer.rendered import RenderedPages
from gateway.v1.snapshot_pb2 import FilePage
from tests.fakes.snapshot_metrics import FakeSnapshotMetrics

KILOBYTES = 10


@pytest.fixture
def clock():
    return [1000.0]


@pytest.fixture
def metrics():
    return FakeSnapshotMetrics()


@pytest.fixture
def rendered(clock, metrics):
    # Room for two pages.
    return RenderedPages(2 * (KILOBYTES + 2) * 1024, metrics, lambda: clock[0])


def pages(letter: str) -> list[FilePage]:
    return [FilePage(lines=letter.encode() * KILOBYTES * 1024)]


def test_what_is_kept_is_found_again(rendered, metrics):
    kept = pages("a")
    assert rendered.find("a") is None

    rendered.keep("a", kept)

    assert rendered.find("a") is kept
    assert metrics.segments == [False, True]
    assert metrics.lines == rendered.size > KILOBYTES * 1024


def test_what_was_not_used_for_a_while_makes_room_the_oldest_first(rendered, clock):
    for name in "ab":
        rendered.keep(name, pages(name))
    clock[0] += 50
    rendered.find("a")
    clock[0] += 50

    rendered.keep("c", pages("c"))

    assert [rendered.find(name) is not None for name in "abc"] == [True, False, True]


def test_what_is_in_use_is_not_given_up_for_something_new(rendered, clock):
    """Of a table larger than the memory that is read again and again, the first part stays and is found."""
    for _ in range(3):
        for name in "abcd":
            if rendered.find(name) is None:
                rendered.keep(name, pages(name))
        clock[0] += 10

    assert [rendered.find(name) is not None for name in "abcd"] == [True, True, False, False]


def test_pages_that_never_fit_are_not_kept(rendered):
    rendered.keep("a", pages("a") * 3)

    assert rendered.find("a") is None
    assert rendered.size == 0


def test_pages_that_are_kept_twice_are_counted_once(rendered):
    rendered.keep("a", pages("a"))
    before = rendered.size

    rendered.keep("a", pages("a"))

    assert rendered.size == before
