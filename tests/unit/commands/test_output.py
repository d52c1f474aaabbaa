from __future__ import annotations

import os
import subprocess
import sys
from typing import IO, Final

import pytest

# A command whose output is more than any buffer holds.
_SAY_MUCH: Final = """
import argparse, sys
import gateway.commands
def run(args, env):
    print("first")
    for _ in range(100_000): print("and more")
    return 0
gateway.commands.parse_arguments = lambda _: argparse.Namespace(run=run)
from gateway.__main__ import main
main()
"""
_BREAK: Final = """
import argparse, gateway.commands
def run(args, env): open("/nowhere/at/all")
gateway.commands.parse_arguments = lambda _: argparse.Namespace(run=run)
gateway.commands.dispatch(["x"], {})
"""


@pytest.fixture(params=["", "1"], ids=["buffered", "unbuffered"])
def env(request: pytest.FixtureRequest) -> dict[str, str]:
    return {**os.environ, "PYTHONUNBUFFERED": request.param}


def run(code: str, env: dict[str, str], stdout: IO[bytes] | int) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=env, stdout=stdout, stderr=subprocess.PIPE, timeout=60, check=False)


def test_a_reader_that_has_seen_enough_is_no_failure(env):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = run(_SAY_MUCH, env, writer)
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_an_output_that_cannot_be_written_is_one_line_and_a_failure(env):
    with open("/dev/full", "wb") as full:  # noqa: PTH123 -- a device
        ended = run(_SAY_MUCH, env, full)
    assert ended.returncode == 1
    assert ended.stderr == b"sluice: cannot write to standard output: No space left on device\n"


def test_a_fault_that_is_not_the_outputs_is_not_taken_for_it(env):
    ended = run(_BREAK, env, subprocess.PIPE)
    assert ended.returncode == 1
    assert b"/nowhere/at/all" in ended.stderr
    assert b"standard output" not in ended.stderr
