from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import stat
import time
from datetime import timedelta

import pytest

from gateway.errors import Unavailable
from vendors.local.state import LocalState


@pytest.fixture
def state(tmp_path):
    return LocalState(tmp_path / "deep" / "state")


@pytest.fixture
def root(tmp_path):
    return tmp_path / "deep" / "state"


async def test_nothing_is_made_before_something_is_kept(state, root):
    assert await state.get("a") is None
    assert await state.list("") == []
    await state.delete("a")

    assert not root.exists()


async def test_files_and_directories_are_their_owners_alone(state, root):
    await state.create("jobs/view/a", b"content")

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (root, *root.rglob("*"))}
    assert modes == {"state": 0o700, "jobs": 0o700, "view": 0o700, "a": 0o600}


async def test_directory_that_others_may_look_into_is_warned_of(root, caplog):
    root.mkdir(parents=True, mode=0o755)
    root.chmod(0o755)

    await LocalState(root).create("a", b"")

    assert "others may look into" in caplog.text


@pytest.mark.parametrize("key", ["link", "link/a", "jobs/link", "jobs/link/a"])
async def test_no_link_below_the_directory_is_followed(state, root, tmp_path, key):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_bytes(b"secret")
    await state.create("jobs/real", b"")
    is_directory = key.endswith("/a")
    for link in (root / "link", root / "jobs" / "link"):
        link.symlink_to(outside if is_directory else outside / "a")

    content = None
    with contextlib.suppress(Unavailable):
        content = await state.get(key)
    assert content is None
    if is_directory:
        with pytest.raises(Unavailable):
            await state.create(f"{key}2", b"mine")
    else:
        assert await state.create(key, b"mine") is None
    assert [found.key for found in await state.list("")] == ["jobs/real"]
    assert sorted(path.name for path in outside.iterdir()) == ["a"]
    assert (outside / "a").read_bytes() == b"secret"


async def test_what_is_no_key_and_what_is_half_written_is_not_listed(state, root):
    await state.create("a", b"")
    (root / ".state-new-123").write_bytes(b"half")
    (root / "no key").write_bytes(b"")
    os.mkfifo(root / "pipe")

    assert [found.key for found in await state.list("")] == ["a"]


async def test_what_a_process_left_half_written_is_removed_after_a_while(root):
    await LocalState(root).create("a", b"")
    old, new = root / ".state-new-old", root / ".state-new-new"
    for file in (old, new):
        file.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)

    await LocalState(root).create("b", b"")

    assert (old.exists(), new.exists()) == (False, True)


async def test_empty_directories_go_with_their_last_file(state, root):
    await state.create("index/t/one/file", b"")
    await state.create("index/t/two", b"")
    await state.delete("index/t/one/file")
    assert not (root / "index" / "t" / "one").exists()
    await state.delete("index/t/two")

    assert not (root / "index").exists()


async def test_who_holds_the_lock_for_ever_makes_others_give_up(root):
    state = LocalState(root, patience=timedelta(milliseconds=20))
    tag = await state.create("a", b"one") or ""
    lock = os.open(root / ".state-lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Unavailable):
            await state.replace("a", b"two", tag)
        assert await state.get_range("a", 0, 10) == b"one"
    finally:
        os.close(lock)
    assert await state.replace("a", b"two", tag)


async def test_disk_that_refuses_is_unavailable(state, root, caplog):
    await state.create("jobs/a", b"one")
    (root / "jobs" / "b").mkdir()
    # A directory where a file should be.
    assert await state.get("jobs/b") is None
    with pytest.raises(Unavailable):
        await state.delete("jobs/b")
    assert "cannot be used" in caplog.text


async def test_two_stores_on_one_directory_see_each_other(root):
    one, two = LocalState(root), LocalState(root)
    tag = await one.create("a", b"0") or ""

    answers = await asyncio.gather(
        *((one, two)[number % 2].replace("a", b"%d" % number, tag) for number in range(1, 11))
    )

    assert len([answer for answer in answers if answer]) == 1
    assert (await one.get("a")) == (await two.get("a"))
