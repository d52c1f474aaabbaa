from __future__ import annotations

import fcntl
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from threading import Event

import pytest

from gateway.adapters.audit_outbox import Outbox

NAMES = [
    "audit-b-20261116T235959999999Z-000009.jsonl",
    "audit-a.b_c-1-20261117T000000000000Z-000001.jsonl",
    "audit-a.b_c-1-20261117T000000000000Z-1000000.jsonl",
]


def test_what_waits_goes_by_the_day_of_its_start_the_oldest_first(tmp_path):
    for name in reversed(NAMES):
        (tmp_path / name).write_bytes(b"{}\n")
    waiting = Outbox(tmp_path).waiting()
    assert [one.key for one in waiting] == [
        f"2026-11-16/{NAMES[0]}",
        f"2026-11-17/{NAMES[1]}",
        f"2026-11-17/{NAMES[2]}",
    ]
    assert {one.size for one in waiting} == {3}


def test_segment_that_somebody_else_removed_is_not_there_to_read(tmp_path):
    (tmp_path / NAMES[0]).write_bytes(b"{}\n")
    outbox = Outbox(tmp_path)
    [segment] = outbox.waiting()
    outbox.remove(segment)
    assert outbox.read(segment) is None
    outbox.remove(segment)


def test_lock_that_was_removed_is_taken_again(tmp_path):
    outbox = Outbox(tmp_path)
    assert outbox.take()
    (tmp_path / "shipping.lock").unlink()
    assert outbox.take()
    assert not Outbox(tmp_path).take()


def test_second_thread_that_takes_the_lock_meanwhile_has_it_too(tmp_path, monkeypatch):
    locked, go_on = Event(), Event()
    flock = fcntl.flock

    def pause_after_locking(descriptor, operation):
        flock(descriptor, operation)
        locked.set()
        go_on.wait(60)

    monkeypatch.setattr(fcntl, "flock", pause_after_locking)
    outbox = Outbox(tmp_path)
    with ThreadPoolExecutor() as threads:
        first = threads.submit(outbox.take)
        locked.wait(60)
        second = threads.submit(outbox.take)
        wait([second], timeout=0.1)
        go_on.set()

    assert first.result()
    assert second.result()


def test_release_while_the_disk_hangs_returns(tmp_path, monkeypatch):
    hangs, go_on = Event(), Event()

    def hang(*_):
        hangs.set()
        go_on.wait(60)

    monkeypatch.setattr(fcntl, "flock", hang)
    outbox = Outbox(tmp_path, release_timeout=timedelta(milliseconds=1))
    with ThreadPoolExecutor() as threads:
        taking = threads.submit(outbox.take)
        assert hangs.wait(60)
        outbox.release()
        assert not taking.done()
        go_on.set()


def test_directory_that_is_not_there_yet_has_nothing_to_ship(tmp_path):
    assert not Outbox(tmp_path / "audit").take()


@pytest.mark.parametrize("name", ["audit-a-20261117T000000000000Z-000001.jsonl.open", "other.jsonl"])
def test_other_files_do_not_wait(tmp_path, name):
    (tmp_path / name).write_bytes(b"{}\n")
    assert Outbox(tmp_path).waiting() == []
