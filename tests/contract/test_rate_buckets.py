"""What the edge relies on, of buckets of one process and of buckets that several share."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest

from gateway.adapters.shared_rate import SharedBuckets, new_memory
from gateway.domain.rate import Rate
from gateway.ports import RateBuckets
from gateway.rpc.rate import LocalBuckets

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
RATE = Rate(requests_per_second=2, burst=3)


@pytest.fixture
def clock() -> list[datetime]:
    return [NOON]


@pytest.fixture(params=["local", "shared"])
def buckets(request, clock) -> Iterator[RateBuckets]:
    if request.param == "local":
        yield LocalBuckets(lambda: clock[0])
        return
    shared = SharedBuckets(new_memory(), lambda: clock[0])
    yield shared
    shared.close()


@pytest.fixture
def memory() -> Iterator[int]:
    descriptor = new_memory()
    yield descriptor
    os.close(descriptor)


def test_a_burst_is_admitted_and_the_next_waits_for_a_token(buckets):
    assert [buckets.take("ann", RATE) for _ in range(4)] == [None, None, None, timedelta(seconds=0.5)]


def test_recipients_do_not_share_a_bucket(buckets):
    for _ in range(4):
        buckets.take("ann", RATE)
    assert buckets.take("bob", RATE) is None


def test_time_brings_tokens(buckets, clock):
    for _ in range(4):
        buckets.take("ann", RATE)
    clock[0] += timedelta(seconds=1)
    assert [buckets.take("ann", RATE) is None for _ in range(3)] == [True, True, False]


def test_a_changed_rate_holds_from_the_next_request(buckets, clock):
    buckets.take("ann", RATE)
    clock[0] += timedelta(seconds=10)
    faster = Rate(requests_per_second=2, burst=5)
    assert [buckets.take("ann", faster) is None for _ in range(6)] == [True] * 5 + [False]


def test_a_clock_that_is_set_back_does_not_empty_a_bucket(buckets, clock):
    buckets.take("ann", RATE)
    clock[0] -= timedelta(hours=1)
    assert [buckets.take("ann", RATE) is None for _ in range(3)] == [True, True, False]


def test_processes_together_get_the_burst_and_what_the_time_earns_and_no_more(memory):
    rate = Rate(requests_per_second=2000, burst=100)
    with ExitStack() as stack:
        takers = [stack.enter_context(taker(memory, rate, attempts=20_000)) for _ in range(4)]
        assert [read(process) for process in takers] == ["ready"] * 4
        # By the clock of the takers.
        began = datetime.now(UTC)
        go(takers)
        taken = [int(read(process)) for process in takers]
        elapsed = (datetime.now(UTC) - began).total_seconds()

    assert rate.burst < sum(taken) <= rate.burst + rate.requests_per_second * elapsed
    assert sum(count > 0 for count in taken) > 1


def test_a_bucket_that_time_does_not_fill_gives_its_burst_exactly(memory):
    rate = Rate(requests_per_second=1e-9, burst=5000)
    with ExitStack() as stack:
        takers = [stack.enter_context(taker(memory, rate, attempts=5000)) for _ in range(4)]
        assert [read(process) for process in takers] == ["ready"] * 4
        go(takers)
        assert sum(int(read(process)) for process in takers) == 5000


def test_a_process_that_is_killed_while_it_holds_a_lock_keeps_nobody_waiting(memory):
    hold = (
        "import fcntl, sys; fcntl.lockf(int(sys.argv[1]), fcntl.LOCK_EX); print('held', flush=True); input()"
    )
    command = [sys.executable, "-c", hold, str(memory)]
    with subprocess.Popen(
        command, pass_fds=(memory,), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert read(holder) == "held"
        with pytest.raises(BlockingIOError):
            fcntl.lockf(memory, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        holder.kill()
        holder.wait()
        with taker(memory, Rate(requests_per_second=1e-9, burst=3), attempts=10) as process:
            assert process.communicate("go\n", timeout=60)[0] == "ready\n3\n"


def taker(memory: int, rate: Rate, attempts: int) -> subprocess.Popen[str]:
    limits = [str(rate.requests_per_second), str(rate.burst)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.contract.take_tokens", str(memory), "ann", *limits, str(attempts)],
        pass_fds=(memory,),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def go(takers: list[subprocess.Popen[str]]) -> None:
    for process in takers:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()


def read(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()
