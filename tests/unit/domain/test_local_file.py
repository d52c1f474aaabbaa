from __future__ import annotations

import os
from contextlib import contextmanager

import pytest

from gateway.domain.local_file import modified_at, open_beneath
from tests.cases import each_case


@pytest.fixture
def root(tmp_path):
    table = tmp_path / "lake" / "sales" / "orders"
    table.mkdir(parents=True)
    (table / "part-0.parquet").write_bytes(b"rows")
    (tmp_path / "secret").write_bytes(b"secret")
    return tmp_path / "lake"


@contextmanager
def opened(*arguments):
    descriptor = open_beneath(*arguments)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_descriptors() -> int:
    with os.scandir("/dev/fd") as entries:
        return len(list(entries))


def test_file_below_the_directory_is_opened(root):
    with opened(root, ["sales", "orders", "part-0.parquet"]) as descriptor:
        assert os.read(descriptor, 10) == b"rows"


def test_directory_below_the_directory_is_opened(root):
    with opened(root, ["sales", "orders"], os.O_DIRECTORY) as descriptor, os.scandir(descriptor) as entries:
        assert [entry.name for entry in entries] == ["part-0.parquet"]


def test_links_on_the_way_to_the_directory_are_followed(root, tmp_path):
    (tmp_path / "link").symlink_to(root)

    with opened(tmp_path / "link", ["sales", "orders", "part-0.parquet"]) as descriptor:
        assert os.read(descriptor, 10) == b"rows"


@pytest.mark.parametrize("target", ["../../../secret", "part-0.parquet"], ids=["outside", "inside"])
def test_linked_file_is_refused_wherever_it_leads(root, target):
    (root / "sales" / "orders" / "link").symlink_to(target)

    with pytest.raises(OSError, match="symbolic links"):
        open_beneath(root, ["sales", "orders", "link"])


@pytest.mark.parametrize("target", ["../../..", "orders"], ids=["outside", "inside"])
def test_linked_directory_is_refused_wherever_it_leads(root, target):
    (root / "sales" / "link").symlink_to(target)

    with pytest.raises(NotADirectoryError):
        open_beneath(root, ["sales", "link", "part-0.parquet"])


@each_case(
    "segments",
    [
        ["..", "secret"],
        ["sales", "..", "..", "secret"],
        ["sales", "."],
        ["sales", ""],
        ["../secret"],
        ["/etc/passwd"],
        ["sales/orders/part-0.parquet"],
        ["sales", "orders", "part-0.parquet\0.txt"],
    ],
    ids=str,
)
def test_segment_that_is_not_a_plain_name_is_refused(root, segments):
    with pytest.raises(PermissionError):
        open_beneath(root, segments)


def test_pipe_does_not_keep_its_reader_waiting(root):
    os.mkfifo(root / "pipe")

    with opened(root, ["pipe"]):
        pass


def test_nothing_is_left_open_whether_it_succeeds_or_fails(root):
    before = open_descriptors()
    with opened(root, ["sales", "orders", "part-0.parquet"]):
        assert open_descriptors() == before + 1
    with pytest.raises(FileNotFoundError):
        open_beneath(root, ["sales", "gone", "part-0.parquet"])
    with pytest.raises(FileNotFoundError):
        open_beneath(root, ["sales", "orders", "gone"])

    assert open_descriptors() == before


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (1_700_000_000_123_456_789, "2023-11-14T22:13:20.123456+00:00"),
        (-1, "1970-01-01T00:00:00+00:00"),
        (2**62 * 1000, "9999-12-31T00:00:00+00:00"),
    ],
)
def test_time_of_change_is_one_that_a_datetime_can_hold(nanoseconds, text):
    status = os.stat_result([0] * 10, {"st_mtime_ns": nanoseconds})

    assert modified_at(status).isoformat() == text
