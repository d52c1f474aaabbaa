"""How the process ends: with its output written, its status given, and nothing taken apart."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

_LEAVE: Final = """
import sys, threading
from gateway.__main__ import leave
threading.Thread(target=threading.Event().wait).start()
sys.stdout.write("said")
leave(3)
"""


def test_process_ends_with_its_status_whatever_is_still_under_way():
    ended = subprocess.run(
        [sys.executable, "-c", _LEAVE], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (3, "said")


def test_output_that_nobody_can_be_given_is_a_failure():
    code = "import os, sys; from gateway.__main__ import leave; os.close(1); sys.stdout.write('x'); leave(0)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert ended.returncode == 1


def test_a_stream_that_was_closed_from_the_start_is_passed_over():
    code = "import sys; from gateway.__main__ import leave; sys.stdout = sys.stderr = None; leave(0)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_help_that_cannot_be_written_is_told_in_one_line():
    with open("/dev/full", "wb") as full:  # noqa: PTH123 -- a device
        ended = subprocess.run(
            [sys.executable, "-m", "gateway", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (
        1,
        b"sluice: cannot write to standard output: No space left on device\n",
    )
