from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.adapters.cache.key import paths_key
from gateway.adapters.cache.url_memory import Asked, Files, Group, Known, Memory, Segments
from gateway.domain.file_path import Paths
from gateway.domain.kept import Kept
from gateway.domain.location import parse_location
from gateway.domain.window import Window
from gateway.ports import Signatures
from tests.unit.adapters.cache.doubles import MINUTE, NOON, WINDOW

LEAST = 45 * MINUTE
WIDTH = WINDOW.end - WINDOW.start
FOLLOWING = Window(WINDOW.end, WINDOW.end + WIDTH, WINDOW.expires_at + WIDTH)
TABLE = parse_location("s3://lake/t")


def asked(*paths: str, place: bytes = b"place", window: Window = WINDOW) -> Asked:
    joined = Paths.of(paths)
    key = paths_key(place, hashlib.sha256(joined.joined).digest())
    return Asked(table=TABLE, paths=joined, window=window, place=place, key=key)


def signed(*paths: str, query: str = "sig=", **changes) -> Signatures:
    joined = "\n".join(f"of-{path}" for path in paths).encode()
    settings = {"origin": "https://h/", "query": query, "expires_at": WINDOW.expires_at, **changes}
    return Signatures(signatures=joined, **settings)


@pytest.fixture
def memory() -> Memory:
    return Kept(2**20)


@pytest.fixture(params=[Segments, Files])
def kept(request, memory):
    return request.param(memory)


@pytest.fixture
def files(memory):
    return Files(memory)


def test_what_was_kept_is_found(kept):
    kept.keep(asked("a", "b"), signed("a", "b"))
    assert kept.find(asked("a", "b"), LEAST, NOON) == signed("a", "b")
    assert kept.find(asked("a", "c"), LEAST, NOON) is None
    assert kept.find(asked("a", "b", place=b"other"), LEAST, NOON) is None


def test_nothing_is_found_that_has_too_little_left(kept):
    kept.keep(asked("a"), signed("a"))
    end = WINDOW.expires_at - LEAST
    assert kept.find(asked("a"), LEAST, end) is not None
    assert kept.find(asked("a"), LEAST, end + timedelta(microseconds=1)) is None


def test_it_takes_no_more_memory_than_it_may(kept, memory):
    for number in range(2000):
        paths = [f"{number}-{n}-{'x' * 50}" for n in range(20)]
        kept.keep(asked(*paths, place=b"%d" % (number % 50)), signed(*paths))
        assert memory.size <= memory.capacity


def test_without_memory_nothing_is_kept():
    for kind in (Segments, Files):
        kept = kind(Kept(0))
        kept.keep(asked("a"), signed("a"))
        assert kept.find(asked("a"), LEAST, NOON) is None


def test_a_segment_is_found_as_a_whole_only(memory):
    segments = Segments(memory)
    segments.keep(asked("a", "b"), signed("a", "b"))
    assert segments.find(asked("a"), LEAST, NOON) is None
    assert segments.known(asked("a", "b"), NOON) == Known()


def test_files_are_found_in_any_company_and_order(files):
    files.keep(asked("a", "b"), signed("a", "b"))
    files.keep(asked("c"), signed("c"))
    assert files.find(asked("c", "a", "c"), LEAST, NOON) == signed("c", "a", "c")
    assert files.find(asked("a", "d"), LEAST, NOON) is None


def test_only_the_files_that_are_lacking_need_to_be_signed(files):
    files.keep(asked("a", "b"), signed("a", "b"))
    known = files.known(asked("d", "b", "c", "a"), NOON)
    assert known.lacking == Paths.of(["d", "c"])
    assert known.joined(signed("d", "c")) == signed("d", "b", "c", "a")


def test_where_none_is_lacking_nothing_needs_to_be_signed(files):
    files.keep(asked("a", "b"), signed("a", "b"))
    known = files.known(asked("b", "a"), NOON)
    assert not known.lacking
    assert known.joined(None) == signed("b", "a")


def test_files_that_have_too_little_left_are_lacking(files):
    files.keep(asked("a"), signed("a"))
    assert files.known(asked("a"), WINDOW.end + timedelta(microseconds=1)) == Known()


@pytest.mark.parametrize(
    "change", [{"query": "other&sig="}, {"origin": "https://other/"}, {"expires_at": NOON + 50 * MINUTE}]
)
def test_signatures_that_do_not_go_together_are_not_put_together(files, change):
    files.keep(asked("a"), signed("a"))
    known = files.known(asked("a", "b"), NOON)
    assert known.joined(signed("b", **change)) is None
    # What comes later takes the place of what it does not go with.
    files.keep(asked("b"), signed("b", **change))
    assert files.find(asked("a"), timedelta(0), NOON) is None
    assert files.find(asked("b"), timedelta(0), NOON) == signed("b", **change)


def fill(files: Files, count: int, place: bytes = b"place", window: Window = WINDOW) -> None:
    """Keep so many files, each as it was asked for."""
    for number in range(count):
        one = asked(f"f{number}", place=place, window=window)
        files.known(one, window.start)
        files.keep(one, signed(f"f{number}", expires_at=window.expires_at))


def found(files: Files, count: int, place: bytes = b"place", window: Window = WINDOW) -> list[int]:
    """Return which of so many files are found."""
    ones = [asked(f"f{number}", place=place, window=window) for number in range(count)]
    return [number for number, one in enumerate(ones) if files.find(one, LEAST, window.start) is not None]


def test_a_table_with_too_many_files_keeps_those_that_came_first_in_what_is_free(files, memory):
    for _ in range(3):
        fill(files, 8000)
        kept = found(files, 8000)
        # However often it is read from end to end.
        assert kept == list(range(len(kept)))
        assert memory.capacity * 0.8 < memory.size <= memory.capacity * 7 / 8 + 1000
        assert 4000 < len(kept) < 8000


def test_of_a_page_that_does_not_fit_as_much_is_kept_as_does(files, memory):
    paths = [f"f{number}" for number in range(8000)]
    files.keep(asked(*paths), signed(*paths))
    assert memory.capacity * 0.8 < memory.size <= memory.capacity * 7 / 8 + 1000
    known = files.known(asked(*paths), NOON)
    assert list(known.by_path) == [path.encode() for path in paths[: len(known.by_path)]]


def test_a_table_with_too_many_files_pushes_no_other_out(files, memory):
    other, segments = Files(memory), Segments(memory)
    segments.keep(asked("a", "b"), signed("a", "b"))
    fill(other, 2000, b"of another storage")
    fill(files, 100, b"of this one")
    fill(files, 8000)
    assert segments.find(asked("a", "b"), LEAST, NOON) is not None
    assert found(other, 2000, b"of another storage") == list(range(2000))
    assert found(files, 100, b"of this one") == list(range(100))


def test_a_table_has_its_share_however_much_others_have_taken(files, memory):
    fill(files, 8000, b"large")
    fill(files, 8000, b"second")
    kept = found(files, 8000, b"second")
    assert kept == list(range(len(kept)))
    assert 1200 < len(kept) < 1500
    # It was taken from what the large one had beyond its own, and from those that came last.
    kept = found(files, 8000, b"large")
    assert kept == list(range(len(kept)))
    assert 3000 < len(kept) < 4500
    assert memory.size <= memory.capacity


def test_windows_that_have_ended_give_way(files, memory):
    for count in (8000, 3500):
        fill(files, count, b"ended")
        fill(files, 3500, b"following", FOLLOWING)
        assert found(files, 3500, b"following", FOLLOWING) == list(range(3500))
    # It may be wanted in need, and stays where there is room.
    fill(files, 100, b"ended")
    fill(files, 100, b"following", FOLLOWING)
    assert found(files, 100, b"ended") == list(range(100))


def test_a_file_that_is_kept_twice_takes_its_room_once(files, memory):
    files.keep(asked("a", "b"), signed("a", "b"))
    size = memory.size
    files.keep(asked("b", "a"), signed("b", "a"))
    assert memory.size == size
    files.keep(asked("a", "c"), signed("a", "c"))
    assert size < memory.size < 2 * size


def test_a_group_takes_what_there_is_room_for_and_gives_back_what_came_last():
    group = Group(replace(signed("a"), signatures=b""), WINDOW)
    empty = group.size
    group.add({b"a": b"x", b"b": b"y", b"c": b"z"}, 400)
    assert list(group.signatures) == [b"a", b"b"]
    assert empty < group.size <= empty + 400
    group.trim(group.size - 1)
    assert list(group.signatures) == [b"a"]
    group.trim(0)
    assert (group.size, group.signatures) == (empty, {})


def test_signatures_do_not_print():
    assert "of-a" not in repr(signed("a"))
