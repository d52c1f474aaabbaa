"""What an audit log relies on, of a real directory and of the one in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.adapters.audit_disk import Disk, LocalDisk
from tests.fakes.disk import FakeDisk


@pytest.fixture(params=["local", "fake"])
def disk(request, tmp_path: Path) -> Disk:
    made: Disk = LocalDisk(tmp_path / "audit") if request.param == "local" else FakeDisk()
    made.prepare()
    return made


def test_appended_data_is_read_back(disk):
    file = disk.create("a")
    file.append(b"one\n")
    file.append(b"two\n")
    file.sync()
    assert file.size() == 8
    assert file.read(4, 3) == b"two"
    file.close()


def test_an_opened_file_is_appended_to(disk):
    disk.create("a").append(b"one\n")
    file = disk.open("a")
    file.append(b"two\n")
    assert file.read(0, 100) == b"one\ntwo\n"


def test_a_truncated_file_goes_on_at_its_new_end(disk):
    file = disk.create("a")
    file.append(b"one\ntwo\n")
    file.truncate(4)
    file.append(b"x\n")
    assert file.read(0, 100) == b"one\nx\n"


def test_creating_an_existing_name_is_refused(disk):
    disk.create("a")
    with pytest.raises(FileExistsError):
        disk.create("a")


def test_opening_a_missing_name_is_refused(disk):
    with pytest.raises(FileNotFoundError):
        disk.open("a")


def test_names_are_sorted_and_follow_renaming_and_removal(disk):
    for name in ("c", "a", "b"):
        disk.create(name).close()
    disk.rename("a", "d")
    disk.remove("b")
    disk.remove("b")
    disk.sync()
    assert list(disk.names()) == ["c", "d"]


def test_a_sync_notices_that_the_file_was_removed(disk):
    file = disk.create("a")
    file.append(b"one\n")
    disk.remove("a")
    with pytest.raises(FileNotFoundError):
        file.sync()


def test_a_lock_keeps_others_out_until_it_is_released(disk):
    first = disk.lock("l")
    assert first is not None
    assert first.held()
    assert disk.lock("l") is None
    assert disk.lock("m") is not None
    first.release()
    again = disk.lock("l")
    assert again is not None
    assert again.held()
