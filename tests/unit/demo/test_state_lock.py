from __future__ import annotations

import fcntl
import os

import pytest

from gateway.demo.state_lock import sole_user
from gateway.errors import Unavailable


def test_second_user_is_refused_with_the_process_of_the_first(tmp_path):
    with sole_user(tmp_path), pytest.raises(Unavailable) as refused, sole_user(tmp_path):
        pass
    assert refused.value.message.startswith(
        f"a demo already runs from {tmp_path} (process {os.getpid()}); stop it, or give --state DIR"
    )


def test_refusal_leaves_the_first_one_its_lock(tmp_path):
    with sole_user(tmp_path):
        for _ in range(2):
            with pytest.raises(Unavailable, match=f"process {os.getpid()}"), sole_user(tmp_path):
                pass


def test_directory_is_free_again_afterwards(tmp_path):
    with sole_user(tmp_path):
        pass
    with sole_user(tmp_path):
        pass


def test_number_that_a_killed_one_has_left_means_nothing(tmp_path):
    (tmp_path / "demo.lock").write_text("1\n")
    with sole_user(tmp_path):
        assert (tmp_path / "demo.lock").read_text() == f"{os.getpid()}\n"


def test_holder_that_has_not_said_its_number_yet_is_told_without_one(tmp_path):
    with (tmp_path / "demo.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Unavailable, match=r"already runs from \S+; stop it"), sole_user(tmp_path):
            pass


def test_two_directories_have_one_demo_each(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    with sole_user(tmp_path), sole_user(other):
        pass
