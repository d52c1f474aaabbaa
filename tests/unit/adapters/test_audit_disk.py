from __future__ import annotations

import logging
import shutil
import stat
from pathlib import Path

import pytest

from gateway.adapters.audit_disk import LocalDisk


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state" / "audit"


@pytest.fixture
def disk(directory: Path) -> LocalDisk:
    disk = LocalDisk(directory)
    disk.prepare()
    return disk


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_directory_files_and_locks_are_for_the_owner_alone(disk, directory):
    disk.create("a").close()
    disk.lock("l")
    assert mode(directory) == 0o700
    assert mode(directory / "a") == 0o600
    assert mode(directory / "l") == 0o600


def test_preparing_an_existing_directory_keeps_what_is_in_it(disk, directory):
    disk.create("a").close()
    disk.prepare()
    assert disk.names() == ["a"]


def test_a_directory_that_others_may_read_is_warned_of(disk, directory, caplog):
    directory.chmod(0o755)
    with caplog.at_level(logging.WARNING):
        disk.prepare()
    assert "others may look" in caplog.text


def test_a_directory_that_vanished_is_not_made_again(disk, directory):
    shutil.rmtree(directory)
    with pytest.raises(FileNotFoundError):
        disk.create("a")
    with pytest.raises(FileNotFoundError):
        disk.names()
    assert not directory.exists()


def test_a_symbolic_link_is_not_followed(disk, directory, tmp_path):
    (tmp_path / "outside").write_bytes(b"keep me")
    (directory / "a").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="symbolic links"):
        disk.open("a")


def test_a_lock_whose_file_was_removed_is_no_longer_held(disk, directory):
    first = disk.lock("l")
    (directory / "l").unlink()
    assert not first.held()
    second = disk.lock("l")
    assert second.held()
    first.release()
    assert second.held(), "letting go of a lost lock must not free another's"


def test_a_released_lock_leaves_no_file(disk, directory):
    disk.lock("l").release()
    assert disk.names() == []
