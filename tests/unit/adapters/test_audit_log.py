from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.adapters.audit_log import (
    AuditSettings,
    LenientAuditLog,
    Pacing,
    SegmentedAuditLog,
    audit_log,
    to_line,
)
from gateway.adapters.audit_segment import Segments
from gateway.adapters.metrics import PrometheusMetrics
from gateway.domain.audit import AuditEvent, AuditKind
from gateway.errors import Unavailable
from gateway.ports import AuditLog
from tests.fakes.disk import FakeDisk, Faults
from tests.hypothesis_profiles import examples

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
NEVER = timedelta(hours=1)


def event(name: str = "e1", kind: AuditKind = AuditKind.GRANT) -> AuditEvent:
    return AuditEvent(id=name, at=NOON, kind=kind, operation="query", outcome="ok")


@asynccontextmanager
async def opened(
    disk: FakeDisk,
    metrics: PrometheusMetrics | None = None,
    flush_interval: timedelta = NEVER,
    buffer_bytes: int = 1_000_000,
    patience: timedelta = NEVER,
    monotonic: Callable[[], float] = time.monotonic,
) -> AsyncIterator[SegmentedAuditLog]:
    segments = Segments(disk, replica="r1", max_bytes=1000, max_age=NEVER, clock=lambda: NOON)
    log = SegmentedAuditLog(
        segments,
        metrics or PrometheusMetrics(version="0"),
        replica="r1",
        pacing=Pacing(
            flush_interval=flush_interval,
            buffer_bytes=buffer_bytes,
            lock_pauses=(timedelta(0),),
            patience=patience,
        ),
        monotonic=monotonic,
    )
    async with log:
        yield log


def ids(disk: FakeDisk) -> list[str]:
    return [json.loads(line)["id"] for line in disk.content("").splitlines()]


def value(metrics: PrometheusMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


@pytest.fixture
def disk() -> FakeDisk:
    return FakeDisk()


@pytest.fixture
def metrics() -> PrometheusMetrics:
    return PrometheusMetrics(version="0")


async def test_an_appended_event_is_on_disk_when_the_call_returns(disk, metrics):
    async with opened(disk, metrics) as log:
        await log.append(event("e1"))
        (inode,) = disk.files.values()
        assert inode.synced == len(inode.content)
        assert ids(disk) == ["e1"]
        assert value(metrics, "sluice_audit_events_total", kind="grant") == 1


async def test_events_that_arrive_while_the_disk_is_busy_share_one_sync(disk):
    busy, release = threading.Event(), threading.Event()

    def hold(operation: str) -> None:
        if operation == "append" and not busy.is_set():
            busy.set()
            release.wait(60)

    disk.fault = hold
    async with opened(disk) as log:
        first = asyncio.create_task(log.append(event("first")))
        await asyncio.to_thread(busy.wait, 60)
        others = [asyncio.create_task(log.append(event(f"e{number}"))) for number in range(50)]
        await asyncio.sleep(0)
        release.set()
        await asyncio.gather(first, *others)
        assert disk.operations.count("sync") == 2
        assert ids(disk) == ["first", *(f"e{number}" for number in range(50))]


@pytest.mark.parametrize("operation", ["append", "sync", "create", "sync names"])
async def test_a_failing_disk_refuses_and_recovers(disk, metrics, operation, caplog):
    async with opened(disk, metrics) as log:
        disk.fault = Faults(operation)
        with pytest.raises(Unavailable, match="cannot be recorded"):
            await log.append(event("lost"))
        await log.append(event("kept"))
    assert ids(disk) == ["kept"]
    assert value(metrics, "sluice_audit_failures_total") == 1
    assert value(metrics, "sluice_audit_events_total", kind="grant") == 1
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


async def test_a_lasting_failure_is_logged_once(disk, caplog):
    async with opened(disk) as log:
        disk.fault = Faults(*["append"] * 5)
        for _ in range(5):
            with pytest.raises(Unavailable):
                await log.append(event())
        assert len(caplog.records) == 1


async def test_an_unforeseen_error_leaves_nobody_waiting(disk):
    def fail(operation: str) -> None:
        if operation == "append":
            raise RuntimeError("a bug")

    async with opened(disk) as log:
        disk.fault = fail
        with pytest.raises(Unavailable):
            await log.append(event())
        disk.fault = Faults()


async def test_a_refusal_tells_the_recipient_nothing_of_the_disk(disk):
    async with opened(disk) as log:
        disk.fault = Faults("append")
        with pytest.raises(Unavailable) as caught:
            await log.append(event())
        assert "disk" not in str(caught.value)


async def test_a_noted_event_goes_with_the_next_append(disk):
    async with opened(disk) as log:
        log.note(event("noted", AuditKind.REQUEST))
        assert disk.files == {}
        await log.append(event("appended"))
        assert ids(disk) == ["noted", "appended"]


async def test_a_noted_event_is_written_after_the_flush_interval(disk):
    written = asyncio.Event()
    loop = asyncio.get_running_loop()

    def notice(operation: str) -> None:
        if operation == "sync":
            loop.call_soon_threadsafe(written.set)

    disk.fault = notice
    async with opened(disk, flush_interval=timedelta(milliseconds=1)) as log:
        log.note(event("noted"))
        async with asyncio.timeout(60):
            await written.wait()
    assert ids(disk) == ["noted"]


async def test_noted_events_are_written_on_close_and_the_segment_is_closed(disk):
    async with opened(disk) as log:
        log.note(event("noted"))
    assert ids(disk) == ["noted"]
    assert all(name.endswith(".jsonl") for name in disk.files)
    assert disk.locks == {}


async def test_noted_events_outlive_a_failed_write(disk):
    async with opened(disk) as log:
        log.note(event("noted"))
        disk.fault = Faults("sync")
        with pytest.raises(Unavailable):
            await log.append(event("refused"))
        log.note(event("later"))
        await log.append(event("appended"))
    assert ids(disk) == ["noted", "later", "appended"]


async def test_a_full_buffer_drops_the_oldest_and_counts_them(disk, metrics, caplog):
    size = len(to_line(event("n0"), "r1"))
    async with opened(disk, metrics, buffer_bytes=3 * size) as log:
        for number in range(5):
            log.note(event(f"n{number}"))
        assert value(metrics, "sluice_audit_dropped_events_total") == 2
        assert value(metrics, "sluice_audit_backlog_bytes") == 3 * size
        assert caplog.text.count("dropped") == 1
    assert ids(disk) == ["n2", "n3", "n4"]
    assert value(metrics, "sluice_audit_backlog_bytes") == 0


async def test_noted_events_that_cannot_be_written_on_close_are_counted(disk, metrics):
    async with opened(disk, metrics) as log:
        log.note(event("lost"))
        disk.gone = True
    assert value(metrics, "sluice_audit_dropped_events_total") == 1


async def test_a_closed_log_refuses_grants_and_counts_notes(disk, metrics):
    async with opened(disk, metrics) as log:
        pass
    with pytest.raises(Unavailable):
        await log.append(event())
    log.note(event())
    assert value(metrics, "sluice_audit_dropped_events_total") == 1


async def test_a_cancelled_append_does_not_disturb_the_others(disk):
    async with opened(disk) as log:
        cancelled = asyncio.create_task(log.append(event("cancelled")))
        other = asyncio.create_task(log.append(event("other")))
        await asyncio.sleep(0)
        cancelled.cancel()
        await other
    assert "other" in ids(disk)


async def test_the_loop_turns_while_the_disk_is_slow(disk):
    release = threading.Event()

    def hold(operation: str) -> None:
        if operation == "sync":
            release.wait(60)

    disk.fault = hold
    async with opened(disk) as log:
        append = asyncio.create_task(log.append(event()))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not append.done()
        release.set()
        await append


class Hang:
    """A disk that says nothing from its next write on, until it is let go."""

    def __init__(self, disk: FakeDisk, operation: str = "append", *, fails: bool = False) -> None:
        self._operation = operation
        self._fails = fails
        self.begun, self.over = threading.Event(), threading.Event()
        disk.fault = self

    def __call__(self, operation: str) -> None:
        if operation == self._operation and not self.over.is_set():
            self.begun.set()
            self.over.wait(60)
            if self._fails:
                raise OSError("gone after all")


SOON = timedelta(milliseconds=20)
MINUTE = timedelta(minutes=1)


class LoopClock:
    """The clock of the event loop, which a test sets forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        self._time, self._ahead = loop.time, 0.0
        monkeypatch.setattr(loop, "time", lambda: self._time() + self._ahead)

    def advance(self, span: timedelta) -> None:
        self._ahead += span.total_seconds()


@pytest.fixture
async def loop_clock(monkeypatch) -> LoopClock:
    return LoopClock(monkeypatch)


async def wait_too_long(log: SegmentedAuditLog, name: str, loop_clock: LoopClock, hang: Hang) -> None:
    """Append an event, and let a minute pass while the disk hangs."""
    append = asyncio.create_task(log.append(event(name)))
    await asyncio.to_thread(hang.begun.wait, 60)
    loop_clock.advance(MINUTE)
    await append


async def test_a_disk_that_hangs_refuses_grants_in_time_and_says_so_once(disk, metrics, caplog, loop_clock):
    hang = Hang(disk, "sync")
    async with opened(disk, metrics, patience=MINUTE) as log:
        for name in ("written late", "never written", "nor this one"):
            with pytest.raises(Unavailable, match="cannot be recorded"):
                await wait_too_long(log, name, loop_clock, hang)
        assert value(metrics, "sluice_audit_failures_total") == 3
        # What was withdrawn takes no room.
        assert value(metrics, "sluice_audit_backlog_bytes") == 0
        hang.over.set()
        await log.append(event("kept"))
    assert ids(disk) == ["written late", "kept"]
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


async def test_who_was_acknowledged_before_a_hang_is_not_refused_by_it(disk, loop_clock):
    async with opened(disk, patience=MINUTE) as log:
        await log.append(event("before"))
        hang = Hang(disk)
        with pytest.raises(Unavailable):
            await wait_too_long(log, "during", loop_clock, hang)
        hang.over.set()
    assert ids(disk)[0] == "before"


@pytest.mark.parametrize("fails", [False, True])
async def test_a_lenient_log_keeps_each_event_once_however_a_hang_ends(disk, fails):
    async with opened(disk, patience=SOON) as strict:
        log: AuditLog = LenientAuditLog(strict)
        hang = Hang(disk, fails=fails)
        await asyncio.gather(*(log.append(event(f"e{number}")) for number in range(3)))
        # Those hang in a write; this one waits behind them.
        await log.append(event("e3"))
        hang.over.set()
    assert sorted(ids(disk)) == ["e0", "e1", "e2", "e3"]


@pytest.mark.parametrize("fails", [False, True])
async def test_a_lenient_log_without_any_patience_keeps_each_event_once(disk, fails):
    async with opened(disk, patience=timedelta(0)) as strict:
        disk.fault = Faults("append") if fails else Faults()
        outcomes = await asyncio.gather(
            *(LenientAuditLog(strict).append(event(f"e{number}")) for number in range(20))
        )
        assert outcomes == [None] * 20
    assert sorted(ids(disk)) == sorted(f"e{number}" for number in range(20))


async def test_the_age_of_the_oldest_event_shows_while_the_disk_hangs_and_is_0_afterwards(disk, metrics):
    now = [100.0]
    hang = Hang(disk)
    async with opened(disk, metrics, monotonic=lambda: now[0]) as log:
        assert value(metrics, "sluice_audit_oldest_wait_seconds") == 0
        first = asyncio.create_task(log.append(event("first")))
        await asyncio.to_thread(hang.begun.wait, 60)
        now[0] += 20
        log.note(event("second"))
        assert value(metrics, "sluice_audit_oldest_wait_seconds") == 20
        hang.over.set()
        await first
        await asyncio.sleep(0)
        now[0] += 5
        # Only what was noted meanwhile still waits.
        assert value(metrics, "sluice_audit_oldest_wait_seconds") == 5
        await log.append(event("third"))
        await asyncio.sleep(0)
        assert value(metrics, "sluice_audit_oldest_wait_seconds") == 0


async def test_what_waits_as_the_disk_fails_grows_old(disk, metrics):
    now = [100.0]
    async with opened(disk, metrics, monotonic=lambda: now[0]) as log:
        log.note(event("noted"))
        disk.fault = Faults("append")
        with pytest.raises(Unavailable):
            await log.append(event("refused"))
        now[0] += 60
        assert value(metrics, "sluice_audit_oldest_wait_seconds") == 60


async def test_a_log_that_cannot_be_opened_says_why(tmp_path: Path, metrics):
    (tmp_path / "file").write_text("in the way")
    chosen = AuditSettings(
        directory=tmp_path / "file" / "audit", replica="r1", segment_bytes=1000, segment_age=NEVER
    )
    with pytest.raises(Unavailable, match=r"cannot be opened: .*File exists"):
        async with audit_log(chosen, metrics, lambda: NOON):
            pass


async def test_events_reach_a_real_directory(tmp_path: Path, metrics):
    chosen = AuditSettings(directory=tmp_path / "audit", replica="r1", segment_bytes=1000, segment_age=NEVER)
    async with audit_log(chosen, metrics, lambda: NOON) as log:
        await asyncio.gather(*(log.append(event(f"e{number}")) for number in range(20)))
    (path,) = (tmp_path / "audit").iterdir()
    assert path.name == "audit-r1-20261116T120000000000Z-000001.jsonl"
    found = [json.loads(line)["id"] for line in path.read_text().splitlines()]
    assert sorted(found) == sorted(f"e{number}" for number in range(20))


async def test_a_second_process_of_the_replica_is_refused(disk):
    async with opened(disk):
        with pytest.raises(Unavailable, match="another process writes the audit log of replica r1"):
            async with opened(disk):
                pass


async def test_a_lenient_log_keeps_trying(disk, caplog):
    caplog.set_level(logging.CRITICAL)
    async with opened(disk) as strict:
        log: AuditLog = LenientAuditLog(strict)
        disk.fault = Faults("append")
        await log.append(event("late"))
        log.note(event("noted"))
        await log.append(event("now"))
    assert ids(disk) == ["late", "noted", "now"]


def test_a_line_holds_every_field_with_replica_and_schema_version():
    full = AuditEvent(
        id="e1",
        at=NOON,
        kind=AuditKind.DENIAL,
        operation="query",
        outcome="NOT_FOUND",
        version=7,
        locations=("s3://bucket/a", "s3://bucket/b"),
        expires_at=NOON + timedelta(hours=1),
    )
    record = json.loads(to_line(full, "r1"))
    assert set(record) == {field.name for field in fields(AuditEvent)} | {"schema_version", "replica"}
    assert record["schema_version"] == 1
    assert record["replica"] == "r1"
    assert record["at"] == "2026-11-16T12:00:00.000000Z"
    assert record["expires_at"] == "2026-11-16T13:00:00.000000Z"
    assert record["kind"] == "denial"
    assert record["locations"] == ["s3://bucket/a", "s3://bucket/b"]
    assert record["version"] == 7
    assert json.loads(to_line(event(), "r1"))["version"] is None


@given(st.text(), st.text(alphabet=st.characters()), st.lists(st.text()))
def test_whatever_a_caller_sends_an_event_is_one_line_of_ascii(agent, principal, locations):
    line = to_line(
        AuditEvent(
            id="e",
            at=NOON,
            kind=AuditKind.REQUEST,
            operation="list",
            outcome="ok",
            principal=principal,
            user_agent=agent + "\udcff",
            locations=tuple(locations),
        ),
        "r1",
    )
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    record = json.loads(line)
    assert record["user_agent"].encode("utf-8").endswith(b"?")


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4)),
        st.tuples(st.just("note"), st.integers(1, 4)),
        st.tuples(st.just("fault"), st.sampled_from(["append", "sync", "rename", "create", "truncate"])),
    ),
    max_size=12,
)


@settings(max_examples=examples(0.6))
@given(STEPS)
def test_whatever_fails_an_event_is_kept_once_if_and_only_if_it_was_not_refused(steps):
    disk = FakeDisk()
    logging.disable(logging.CRITICAL)
    try:
        expected = asyncio.run(_play(disk, steps))
    finally:
        logging.disable(logging.NOTSET)
    assert sorted(ids(disk)) == sorted(expected)


async def _play(disk: FakeDisk, steps: list[tuple[str, Any]]) -> list[str]:
    """Return the ids of the events that were noted or acknowledged."""
    kept: list[str] = []
    faults, number = Faults(), 0
    disk.fault = faults
    async with opened(disk) as log:
        for action, argument in steps:
            if action == "fault":
                faults.left.append(argument)
                continue
            names = [f"e{number + offset}" for offset in range(argument)]
            number += argument
            if action == "append":
                results = await asyncio.gather(
                    *(log.append(event(name)) for name in names), return_exceptions=True
                )
                kept += [name for name, result in zip(names, results, strict=True) if result is None]
            else:
                kept += names
                for name in names:
                    log.note(event(name))
        faults.left.clear()
    return kept
