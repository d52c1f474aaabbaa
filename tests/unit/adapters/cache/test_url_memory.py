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
from gateway.ports import Signatures
from tests.unit.adapters.cache.doubles import MINUTE, NOON, WINDOW

LEAST = 45 * MINUTE
TABLE = parse_location("s3://lake/t")


def asked(*paths: str, place: bytes = b"place") -> Asked:
    joined = Paths.of(paths)
    key = paths_key(place, hashlib.sha256(joined.joined).digest())
    return Asked(table=TABLE, paths=joined, window=WINDOW, place=place, key=key)


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


def test_a_table_with_too_many_files_keeps_those_that_came_last(memory):
    files = Files(memory)
    for number in range(5000):
        files.keep(asked(f"f{number}"), signed(f"f{number}"))
        assert memory.size <= memory.capacity / 4 + 1000
    assert files.find(asked("f4999"), LEAST, NOON) is not None
    assert files.find(asked("f0"), LEAST, NOON) is None


def test_a_file_that_is_kept_twice_takes_its_room_once():
    group = Group(replace(signed("a"), signatures=b""))
    group.add(Paths.of(["a", "b"]), b"x\ny")
    size = group.size
    group.add(Paths.of(["a", "b"]), b"x\ny")
    assert group.size == size
    group.trim(0)
    assert (group.size, group.signatures) == (0, {})


def test_signatures_do_not_print():
    assert "of-a" not in repr(signed("a"))
