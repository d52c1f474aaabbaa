from __future__ import annotations

import asyncio
import errno
import logging
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.adapters.audit_disk import LocalDisk
from gateway.adapters.audit_outbox import Outbox
from gateway.adapters.audit_segment import Segments
from gateway.adapters.audit_shipping import Shipper, Shipping, ShippingFailure, ShippingPace
from tests.fakes.landing import FakeLanding, FakeShippingMetrics, Mishap
from tests.hypothesis_profiles import examples

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
FIRST = "audit-a-1-20261117T120000000000Z-000001.jsonl"
SECOND = "audit-a-1-20261117T120000000000Z-000002.jsonl"


def shipper_of(directory: Path, landing: FakeLanding, metrics: FakeShippingMetrics | None = None, **options):
    return Shipper(Outbox(directory), landing, metrics or FakeShippingMetrics(), **options)


def put(directory: Path, name: str = FIRST, content: bytes = b'{"id":"1"}\n') -> bytes:
    (directory / name).write_bytes(content)
    return content


def left_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("*.jsonl"))


async def test_closed_segment_goes_under_its_day_and_its_name(tmp_path):
    content, landing, metrics = put(tmp_path), FakeLanding(), FakeShippingMetrics()
    assert await shipper_of(tmp_path, landing, metrics).ship_all()
    assert landing.kept == {f"2026-11-17/{FIRST}": content}
    assert left_in(tmp_path) == []
    assert (metrics.segments, metrics.size, metrics.backlog) == (1, len(content), (0, timedelta(0)))


async def test_open_segments_locks_and_strange_files_stay(tmp_path):
    names = [f"{FIRST}.open", "audit-a-1.lock", "notes.jsonl", "audit-2026.jsonl"]
    for name in names:
        put(tmp_path, name)
    landing = FakeLanding()
    await shipper_of(tmp_path, landing).ship_all()
    assert landing.kept == {}
    assert {path.name for path in tmp_path.iterdir()} >= set(names)


async def test_segment_whose_answer_was_lost_is_found_there_and_removed(tmp_path):
    content, metrics = put(tmp_path), FakeShippingMetrics()
    landing = FakeLanding(mishaps=[Mishap.ANSWER_LOST])
    shipper = shipper_of(tmp_path, landing, metrics)
    assert not await shipper.ship_all()
    assert left_in(tmp_path) == [FIRST]
    assert await shipper.ship_all()
    assert (landing.kept, left_in(tmp_path)) == ({f"2026-11-17/{FIRST}": content}, [])
    assert metrics.failures == [ShippingFailure.STORE]


@pytest.mark.parametrize(
    "mishap", [Mishap.LIES, Mishap.SAYS_TAKEN, Mishap.REFUSED, Mishap.STALLS, Mishap.BREAKS]
)
async def test_segment_that_is_not_there_stays_on_disk(tmp_path, mishap):
    content, metrics = put(tmp_path), FakeShippingMetrics()
    landing = FakeLanding(mishaps=[mishap])
    shipper = shipper_of(tmp_path, landing, metrics)
    assert not await shipper.ship_all()
    assert left_in(tmp_path) == [FIRST]
    assert metrics.failures == [ShippingFailure.STORE]
    assert metrics.backlog[0] == len(content)
    assert await shipper.ship_all()
    assert left_in(tmp_path) == []


async def test_what_an_sdk_says_is_not_logged(tmp_path, caplog):
    put(tmp_path)
    await shipper_of(tmp_path, FakeLanding(mishaps=[Mishap.BREAKS])).ship_all()
    assert [(record.levelno, record.reason) for record in caplog.records] == [(logging.ERROR, "RuntimeError")]
    assert "secret words" not in caplog.text


async def test_store_that_hangs_is_left_after_a_while(tmp_path):
    put(tmp_path)
    metrics, landing = FakeShippingMetrics(), FakeLanding(mishaps=[Mishap.HANGS])
    pace = ShippingPace(patience=timedelta(seconds=0.3))
    assert not await shipper_of(tmp_path, landing, metrics, pace=pace).ship_all()
    assert (metrics.failures, left_in(tmp_path)) == ([ShippingFailure.STORE], [FIRST])


async def test_segment_whose_name_is_taken_is_kept_and_told_of_loudly_and_once(tmp_path, caplog):
    put(tmp_path)
    put(tmp_path, SECOND, b'{"id":"2"}\n')
    landing = FakeLanding(kept={f"2026-11-17/{FIRST}": b"something else"})
    metrics = FakeShippingMetrics()
    shipper = shipper_of(tmp_path, landing, metrics)
    for _ in range(3):
        # No further try would help, and the others are shipped.
        assert await shipper.ship_all()
    assert left_in(tmp_path) == [FIRST]
    assert landing.kept[f"2026-11-17/{FIRST}"] == b"something else"
    assert metrics.failures == [ShippingFailure.CONFLICT]
    told = [record.levelno for record in caplog.records if "has its name" in record.message]
    assert told == [logging.ERROR]
    assert metrics.backlog[0] > 0


class BadSector(Outbox):
    """Cannot read the first segment."""

    def read(self, segment):
        if segment.name == FIRST:
            raise OSError(errno.EIO, "input/output error")
        return super().read(segment)


class TooSlow(FakeLanding):
    """Never has the first segment in time."""

    async def create(self, key, content):
        if key.endswith(FIRST):
            raise TimeoutError
        return await super().create(key, content)


@pytest.mark.parametrize(
    ("outbox", "landing", "failure"),
    [(BadSector, FakeLanding, ShippingFailure.DISK), (Outbox, TooSlow, ShippingFailure.STORE)],
)
async def test_segment_that_cannot_be_shipped_lets_others_pass_after_a_few_tries(
    tmp_path, caplog, outbox, landing, failure
):
    content = put(tmp_path)
    put(tmp_path, SECOND, b'{"id":"2"}\n')
    store, metrics, now = landing(), FakeShippingMetrics(), NOON
    shipper = Shipper(outbox(tmp_path), store, metrics, clock=lambda: now)
    for _ in range(3):
        assert not await shipper.ship_all()
        assert store.kept == {}
    # The other passes, so it is not the store; and no further try would help now.
    assert await shipper.ship_all()
    assert store.kept.keys() == {f"2026-11-17/{SECOND}"}
    assert (left_in(tmp_path), metrics.backlog[0]) == ([FIRST], len(content))
    assert await shipper.ship_all()
    assert metrics.failures == [failure] * 4
    told = [record.segment for record in caplog.records if "kept here for now" in record.message]
    assert told == [f"2026-11-17/{FIRST}"]
    now += timedelta(minutes=11)
    assert not await shipper.ship_all()
    assert len(metrics.failures) == 5


async def test_no_segment_is_set_aside_for_a_store_that_was_away(tmp_path):
    put(tmp_path)
    put(tmp_path, SECOND, b'{"id":"2"}\n')
    landing = FakeLanding(mishaps=[Mishap.REFUSED] * 7)
    shipper = shipper_of(tmp_path, landing)
    for _ in range(7):
        assert not await shipper.ship_all()
    # They took turns, one for each round.
    assert [key.endswith(FIRST) for key in landing.creates] == [True] * 3 + [False] * 3 + [True]
    assert await shipper.ship_all()
    assert left_in(tmp_path) == []


async def test_process_that_starts_after_a_crash_goes_on(tmp_path):
    content = put(tmp_path)
    landing = FakeLanding(kept={f"2026-11-17/{FIRST}": content})
    metrics = FakeShippingMetrics()
    assert await shipper_of(tmp_path, landing, metrics).ship_all()
    assert (left_in(tmp_path), metrics.failures) == ([], [])


async def test_one_of_two_processes_ships_and_the_other_takes_over(tmp_path):
    landing, first_metrics, second_metrics = FakeLanding(), FakeShippingMetrics(), FakeShippingMetrics()
    first = shipper_of(tmp_path, landing, first_metrics)
    second = shipper_of(tmp_path, landing, second_metrics)
    assert await first.ship_all()
    put(tmp_path)
    assert not await second.ship_all()
    assert landing.kept == {}
    await first.close()
    assert await second.ship_all()
    assert second_metrics.segments == 1


async def test_store_that_fails_is_tried_again_after_longer_and_longer_pauses(tmp_path):
    put(tmp_path)
    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 9:
            raise asyncio.CancelledError

    landing = FakeLanding(mishaps=[Mishap.REFUSED] * 8)
    with pytest.raises(asyncio.CancelledError):
        await shipper_of(tmp_path, landing, pace=ShippingPace(), sleep=sleep).run()
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 5]
    assert left_in(tmp_path) == []


async def test_age_of_the_oldest_is_told_while_the_store_is_away(tmp_path):
    put(tmp_path)
    closed_at = datetime.fromtimestamp((tmp_path / FIRST).stat().st_mtime, tz=UTC)
    metrics, landing = FakeShippingMetrics(), FakeLanding(mishaps=[Mishap.REFUSED])
    await shipper_of(tmp_path, landing, metrics, clock=lambda: closed_at + timedelta(hours=2)).ship_all()
    assert metrics.backlog[1] == timedelta(hours=2)


async def test_directory_that_cannot_be_read_is_a_failure_and_no_end(tmp_path):
    directory = tmp_path / "audit"
    directory.write_text("not a directory")
    metrics = FakeShippingMetrics()
    assert not await shipper_of(directory, FakeLanding(), metrics).ship_all()
    assert metrics.failures == [ShippingFailure.DISK]


class Pauses:
    """Has a shipper pause after its first round until it stops; its last attempts follow at once."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def sleep(self, _: float) -> None:
        if not self.begun.is_set():
            self.begun.set()
            await asyncio.Event().wait()


async def test_last_segment_is_shipped_at_the_end(tmp_path):
    landing, pauses = FakeLanding(mishaps=[Mishap.REFUSED]), Pauses()
    shipper = shipper_of(tmp_path, landing, sleep=pauses.sleep)
    async with Shipping(shipper, timedelta(minutes=1)).running() as shipping:
        await pauses.begun.wait()
        shipping.begin_stop()
        put(tmp_path)
    assert left_in(tmp_path) == []
    # And whoever comes next may ship at once.
    assert Outbox(tmp_path).take()


async def test_end_leaves_the_rest_to_another_process_that_goes_on_shipping(tmp_path):
    landing, pauses = FakeLanding(), []
    other = shipper_of(tmp_path, landing)
    await other.ship_all()
    put(tmp_path)

    async def sleep(seconds):
        pauses.append(seconds)

    await shipper_of(tmp_path, landing, sleep=sleep).ship_rest(0.25)
    assert (pauses, left_in(tmp_path)) == ([0.25] * 8, [FIRST])
    assert await other.ship_all()


async def test_end_does_not_wait_longer_than_its_grace_for_a_store_that_is_away(tmp_path):
    put(tmp_path)
    # All of them would take four minutes.
    landing = FakeLanding(mishaps=[Mishap.REFUSED] * 1000)
    shipping = Shipping(shipper_of(tmp_path, landing), timedelta(0), reserve=timedelta(milliseconds=100))
    async with shipping.running():
        pass
    assert landing.mishaps
    assert left_in(tmp_path) == [FIRST]


async def test_last_segment_has_time_of_its_own_where_requests_took_all_of_the_grace(tmp_path):
    landing, pauses = FakeLanding(mishaps=[Mishap.REFUSED] * 6), Pauses()
    shipper = shipper_of(tmp_path, landing, sleep=pauses.sleep)
    async with Shipping(shipper, grace=timedelta(0)).running() as shipping:
        await pauses.begun.wait()
        shipping.begin_stop()
        put(tmp_path)
    assert left_in(tmp_path) == []


MISHAPS = st.lists(st.sampled_from([None, *(one for one in Mishap if one is not Mishap.HANGS)]), max_size=12)
COMMITS = st.lists(st.integers(1, 4), min_size=1, max_size=8)


@settings(max_examples=examples(0.4))
@given(commits=COMMITS, mishaps=MISHAPS, rounds=st.integers(0, 6), crashes=st.sets(st.integers(0, 6)))
def test_every_line_is_there_once_or_still_here_whatever_fails_when(commits, mishaps, rounds, crashes):
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        lines = write_segments(directory, commits)
        landing = FakeLanding(mishaps=list(mishaps))
        asyncio.run(ship_in_rounds(directory, landing, rounds, crashes))
        landed = [line for content in landing.kept.values() for line in content.splitlines()]
        here = [line for name in left_in(directory) for line in (directory / name).read_bytes().splitlines()]
        assert len(landed) == len(set(landed))
        assert set(landed) | set(here) == lines
        # What is in both is what was put without anybody having seen it.
        landing.mishaps.clear()
        asyncio.run(ship_in_rounds(directory, landing, 1, set()))
        landed = [line for content in landing.kept.values() for line in content.splitlines()]
        assert (sorted(landed), left_in(directory)) == (sorted(lines), [])


def write_segments(directory: Path, commits: list[int]) -> set[bytes]:
    segments = Segments(
        LocalDisk(directory), replica="a-1", max_bytes=40, max_age=timedelta(hours=1), clock=lambda: NOON
    )
    segments.open()
    lines = set()
    for number, size in enumerate(commits):
        batch = [b'{"id":"%d-%d"}' % (number, line) for line in range(size)]
        segments.commit(b"\n".join(batch) + b"\n")
        lines |= set(batch)
    segments.close()
    return lines


async def ship_in_rounds(directory: Path, landing: FakeLanding, rounds: int, crashes: set[int]) -> None:
    shipper = shipper_of(directory, landing)
    for number in range(rounds):
        await shipper.ship_all()
        if number in crashes:
            await shipper.close()
            shipper = shipper_of(directory, landing)
    await shipper.close()
