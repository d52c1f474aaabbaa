from __future__ import annotations

import asyncio
import errno
import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gateway.edge.local_files import FileFailed, FileGone, FileRefused, open_local_file


@pytest.fixture
def root(tmp_path):
    (tmp_path / "lake" / "t").mkdir(parents=True)
    (tmp_path / "lake" / "t" / "part-0.parquet").write_bytes(b"0123456789")
    (tmp_path / "secret").write_bytes(b"secret")
    return tmp_path / "lake"


@pytest.fixture
async def one_thread():
    """Let one thread do all the work of the loop, and be there before descriptors are counted."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    await asyncio.to_thread(int)


def open_descriptors() -> int:
    with os.scandir("/dev/fd") as entries:
        return len(list(entries))


async def test_file_is_read_piece_by_piece(root):
    file = await open_local_file(root, ["t", "part-0.parquet"])

    assert file.size == 10
    assert await file.read(0, 4) == b"0123"
    assert await file.read(8, 4) == b"89"
    assert await file.read(10, 4) == b""
    file.close()


async def test_tag_changes_with_the_file(root):
    path = root / "t" / "part-0.parquet"
    tags = []
    for time in (1, 2):
        os.utime(path, ns=(time, time))
        file = await open_local_file(root, ["t", "part-0.parquet"])
        tags.append(file.etag)
        file.close()

    assert tags == ['"a-1"', '"a-2"']


@pytest.mark.parametrize("segments", [["t", "gone"], ["gone", "part-0.parquet"], ["t", "x" * 300]], ids=str)
async def test_file_that_is_not_there_is_gone(root, segments):
    with pytest.raises(FileGone):
        await open_local_file(root, segments)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.EIO, errno.ESTALE])
async def test_file_that_cannot_be_opened_for_now_is_neither_gone_nor_refused(root, monkeypatch, code):
    def fail(*_: object, **__: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "open", fail)

    with pytest.raises(FileFailed):
        await open_local_file(root, ["t", "part-0.parquet"])


@pytest.mark.parametrize("name", ["link", "folder", "pipe", "..", "part-0.parquet/x"])
async def test_what_is_not_a_regular_file_below_the_root_is_refused(root, name):
    (root / "t" / "link").symlink_to(root.parent / "secret")
    (root / "t" / "folder").mkdir()
    os.mkfifo(root / "t" / "pipe")
    before = open_descriptors()

    with pytest.raises(FileRefused):
        await open_local_file(root, ["t", *name.split("/")])

    assert open_descriptors() <= before


async def test_closed_file_reads_as_nothing_and_gives_its_descriptor_back(root, one_thread):
    before = open_descriptors()
    file = await open_local_file(root, ["t", "part-0.parquet"])
    assert open_descriptors() == before + 1

    file.close()
    file.close()

    # One thread does one thing after another: the read comes after the close.
    assert await file.read(0, 4) == b""
    assert open_descriptors() == before


async def test_file_is_closed_when_nobody_waits_for_it_any_more(root, one_thread):
    before = open_descriptors()
    busy = threading.Event()
    blocking = asyncio.get_running_loop().run_in_executor(None, busy.wait)
    opening = asyncio.create_task(open_local_file(root, ["t", "part-0.parquet"]))
    await asyncio.sleep(0)

    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    busy.set()
    await blocking
    for _ in range(3):
        await asyncio.to_thread(int)

    assert open_descriptors() == before


async def test_failure_is_nobodys_when_nobody_waits_for_it_any_more(root, one_thread):
    busy = threading.Event()
    blocking = asyncio.get_running_loop().run_in_executor(None, busy.wait)
    opening = asyncio.create_task(open_local_file(root, ["t", "gone"]))
    await asyncio.sleep(0)
    unhandled = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))

    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    busy.set()
    await blocking
    await asyncio.to_thread(gc.collect)
    await asyncio.sleep(0)

    assert unhandled == []
