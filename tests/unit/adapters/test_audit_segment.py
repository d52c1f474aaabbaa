from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.adapters.audit_disk import LocalDisk
from gateway.adapters.audit_segment import Segments
from gateway.errors import InvalidArgument
from tests.fakes.disk import FakeDisk, Faults

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
FIRST = "audit-r1-20261116T120000000000Z-000001.jsonl"


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def disk() -> FakeDisk:
    return FakeDisk()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def segments_on(disk: FakeDisk, clock: Clock, replica: str = "r1", max_bytes: int = 100) -> Segments:
    return Segments(disk, replica=replica, max_bytes=max_bytes, max_age=timedelta(minutes=10), clock=clock)


@pytest.fixture
def segments(disk: FakeDisk, clock: Clock) -> Segments:
    opened = segments_on(disk, clock)
    opened.open()
    return opened


def test_a_committed_line_is_synced_in_an_open_segment(segments, disk):
    segments.commit(b"one\n")
    assert list(disk.files) == [FIRST + ".open"]
    inode = disk.files[FIRST + ".open"]
    assert bytes(inode.content) == b"one\n"
    assert inode.synced == 4
    assert FIRST + ".open" in disk.synced


def test_nothing_is_created_before_the_first_line(segments, disk):
    segments.commit(b"")
    assert disk.files == {}


def test_a_segment_that_would_grow_too_large_is_closed_first(segments, disk):
    segments.commit(b"a" * 59 + b"\n")
    segments.commit(b"b" * 59 + b"\n")
    assert bytes(disk.files[FIRST].content) == b"a" * 59 + b"\n"
    assert disk.content(".open") == b"b" * 59 + b"\n"


def test_a_batch_larger_than_a_segment_is_kept_whole(segments, disk):
    segments.commit(b"a" * 500 + b"\n")
    segments.commit(b"b\n")
    assert len(disk.files[FIRST].content) == 501


def test_an_old_segment_is_closed_without_a_new_line(segments, disk, clock):
    segments.commit(b"one\n")
    clock.now += timedelta(minutes=10)
    segments.commit(b"")
    assert list(disk.files) == [FIRST]


def test_a_segment_is_closed_when_the_clock_was_set_back(segments, disk, clock):
    segments.commit(b"one\n")
    clock.now -= timedelta(days=1)
    segments.commit(b"two\n")
    assert bytes(disk.files[FIRST].content) == b"one\n"


def test_segments_of_the_same_moment_have_different_names(segments, disk):
    for _ in range(5):
        segments.commit(b"x" * 99 + b"\n")
    assert len(disk.files) == 5


def test_a_restart_at_the_same_moment_does_not_reuse_a_name(segments, disk, clock):
    segments.commit(b"one\n")
    segments.close()
    again = segments_on(disk, clock)
    again.open()
    again.commit(b"two\n")
    again.close()
    assert [bytes(inode.content) for _, inode in sorted(disk.files.items())] == [b"one\n", b"two\n"]


def test_close_closes_the_segment_and_lets_go_of_the_lock(segments, disk):
    segments.commit(b"one\n")
    segments.close()
    assert list(disk.files) == [FIRST]
    assert disk.locks == {}


@pytest.mark.parametrize("operation", ["append", "sync"])
def test_a_failed_write_keeps_none_of_its_lines_and_the_next_one_works(segments, disk, operation):
    segments.commit(b"one\n")
    disk.fault = Faults(operation)
    with pytest.raises(OSError, match="the disk said no"):
        segments.commit(b"two\n")
    segments.commit(b"three\n")
    segments.close()
    assert disk.content(".jsonl") == b"one\nthree\n"
    assert disk.content(".open") == b""


def test_a_file_whose_sync_failed_is_not_written_to_again(segments, disk):
    segments.commit(b"one\n")
    disk.fault = Faults("sync")
    with pytest.raises(OSError, match="the disk said no"):
        segments.commit(b"two\n")
    segments.commit(b"three\n")
    assert bytes(disk.files[FIRST].content) == b"one\n"


@pytest.mark.parametrize("operation", ["create", "sync names", "names", "append", "sync"])
def test_a_failed_first_write_leaves_no_litter(segments, disk, operation):
    disk.fault = Faults(operation)
    with pytest.raises(OSError, match="the disk said no"):
        segments.commit(b"one\n")
    segments.commit(b"")
    assert disk.files == {}


def test_a_disk_that_stays_full_does_not_collect_files(segments, disk):
    disk.fault = Faults(*["append"] * 50)
    for _ in range(50):
        with pytest.raises(OSError, match="the disk said no"):
            segments.commit(b"one\n")
    assert len(disk.files) == 1
    segments.commit(b"two\n")
    assert disk.content("") == b"two\n"


def test_a_segment_that_cannot_be_closed_is_closed_later(segments, disk, clock):
    segments.commit(b"one\n")
    clock.now += timedelta(hours=1)
    disk.fault = Faults("rename")
    with pytest.raises(OSError, match="the disk said no"):
        segments.commit(b"")
    segments.commit(b"")
    assert list(disk.files) == [FIRST]


def test_a_vanished_directory_fails_until_it_is_back(segments, disk):
    segments.commit(b"one\n")
    disk.files.clear()
    disk.locks.clear()
    disk.gone = True
    for _ in range(3):
        with pytest.raises(FileNotFoundError):
            segments.commit(b"two\n")
    disk.gone = False
    segments.commit(b"three\n")
    assert disk.content(".open") == b"three\n"
    assert "audit-r1.lock" in disk.locks


def test_a_removed_segment_is_noticed(segments, disk):
    segments.commit(b"one\n")
    disk.files.clear()
    with pytest.raises(FileNotFoundError):
        segments.commit(b"two\n")
    segments.commit(b"three\n")
    assert disk.content(".open") == b"three\n"


def test_two_processes_of_one_replica_are_refused(segments, disk, clock):
    with pytest.raises(BlockingIOError, match="replica r1"):
        segments_on(disk, clock).open()


def test_two_replicas_share_a_directory(segments, disk, clock):
    segments.commit(b"one\n")
    other = segments_on(disk, clock, replica="r2")
    other.open()
    other.commit(b"two\n")
    assert sorted(disk.files) == [FIRST + ".open", FIRST.replace("r1", "r2") + ".open"]


def test_a_leftover_loses_its_torn_line_and_is_closed(segments, disk, clock):
    segments.commit(b"one\ntwo\n")
    disk.files[FIRST + ".open"].content += b"thr"
    disk.crash(lambda synced, size: size, names_synced=True)
    segments_on(disk, clock).open()
    assert list(disk.files) == [FIRST]
    assert bytes(disk.files[FIRST].content) == b"one\ntwo\n"


def test_a_leftover_is_on_disk_before_it_is_closed(disk, clock):
    disk.create(FIRST + ".open").append(b"one\n")
    segments_on(disk, clock).open()
    disk.crash(lambda synced, size: synced, names_synced=False)
    assert bytes(disk.files[FIRST].content) == b"one\n"


def test_a_leftover_without_a_whole_line_is_removed(disk, clock):
    disk.create(FIRST + ".open").append(b"half")
    segments_on(disk, clock).open()
    assert disk.files == {}


def test_a_leftover_with_a_long_torn_line_keeps_the_lines_before(disk, clock):
    disk.create(FIRST + ".open").append(b"one\n" + b"x" * 200_000)
    segments_on(disk, clock).open()
    assert bytes(disk.files[FIRST].content) == b"one\n"


def test_a_leftover_of_a_dead_replica_is_closed_by_another(segments, disk, clock):
    segments.commit(b"one\n")
    disk.crash(lambda synced, size: size, names_synced=True)
    segments_on(disk, clock, replica="r2").open()
    assert list(disk.files) == [FIRST]
    assert list(disk.locks) == ["audit-r2.lock"]


def test_the_open_segment_of_a_living_replica_is_left_alone(segments, disk, clock):
    segments.commit(b"one\n")
    segments_on(disk, clock, replica="r2").open()
    assert list(disk.files) == [FIRST + ".open"]


def test_a_leftover_that_cannot_be_closed_does_not_stop_the_start(disk, clock, caplog):
    disk.create(FIRST + ".open").append(b"one\n")
    disk.fault = Faults("rename")
    segments = segments_on(disk, clock)
    segments.open()
    segments.commit(b"two\n")
    assert "stays open" in caplog.text


def test_foreign_files_are_left_alone(disk, clock):
    disk.create("notes.open").append(b"torn")
    disk.create("audit-r1.jsonl.open").append(b"torn")
    segments_on(disk, clock).open()
    assert sorted(disk.files) == ["audit-r1.jsonl.open", "notes.open"]


def test_locks_of_dead_replicas_go_and_those_of_the_living_stay(tmp_path, clock):
    disk = LocalDisk(tmp_path)
    (tmp_path / "audit-dead.lock").touch()
    living = disk.lock("audit-living.lock")
    opened = Segments(disk, replica="r1", max_bytes=100, max_age=timedelta(minutes=10), clock=clock)
    opened.open()
    assert disk.names() == ["audit-living.lock", "audit-r1.lock"]
    assert living is not None
    assert living.held()


@pytest.mark.parametrize("replica", ["", "a/b", "..", "a b", "é", "x" * 101, "a\n"])
def test_a_replica_id_that_is_no_file_name_is_refused(disk, clock, replica):
    with pytest.raises(InvalidArgument, match="replica id"):
        segments_on(disk, clock, replica=replica)


OPERATIONS = ["append", "sync", "sync names", "rename", "create", "truncate", "remove", "names"]
STEPS = st.one_of(
    st.tuples(st.just("commit"), st.integers(1, 5)),
    st.tuples(st.just("wait"), st.integers(0, 900)),
    st.tuples(st.just("fault"), st.lists(st.sampled_from(OPERATIONS), max_size=3)),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("crash"), st.tuples(st.integers(0, 10_000), st.booleans())),
    st.tuples(
        st.just("power_cut"), st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 10_000), st.booleans())
    ),
)


@given(st.lists(STEPS, max_size=30))
@example([("fault", ["append", "truncate"]), ("commit", 2), ("restart", None), ("crash", (1, False))])
def test_every_acknowledged_line_is_kept_once_whatever_happens(steps):
    """Commits, faults, rotations, restarts and crashes that cut unsynced bytes anywhere, in any order."""
    disk, clock = FakeDisk(), Clock()
    world = _World(disk=disk, clock=clock)
    for action, argument in steps:
        getattr(world, action)(argument)
    world.crash((0, True))

    kept = disk.content(".jsonl").splitlines(keepends=True)
    assert disk.content(".open") == b""
    assert all(line.endswith(b"\n") and line[:5].isdigit() for line in kept)
    assert [line for line in world.acknowledged if kept.count(line) != 1] == []


class _World:
    def __init__(self, *, disk: FakeDisk, clock: Clock) -> None:
        self.disk, self.clock = disk, clock
        self.acknowledged: list[bytes] = []
        self.number = 0
        self.segments = self._opened()

    def commit(self, lines: int) -> None:
        batch = []
        for _ in range(lines):
            self.number += 1
            batch.append(b"%05d the line\n" % self.number)
        try:
            self.segments.commit(b"".join(batch))
        except OSError:
            return
        self.acknowledged += batch

    def wait(self, seconds: int) -> None:
        self.clock.now += timedelta(seconds=seconds)
        try:
            self.segments.commit(b"")
        except OSError:
            return

    def fault(self, operations: list[str]) -> None:
        self.disk.fault = Faults(*operations)

    def restart(self, _: None) -> None:
        try:
            self.segments.close()
        except OSError:
            self.disk.locks.clear()
        self.disk.fault = Faults()
        self.segments = self._opened()

    def crash(self, how: tuple[int, bool]) -> None:
        cut, names_synced = how
        self.disk.crash(lambda synced, size: synced + cut % (size - synced + 1), names_synced=names_synced)
        self.segments = self._opened()

    def power_cut(self, how: tuple[str, int, bool]) -> None:
        """Crash in the middle of a commit."""
        operation, cut, names_synced = how

        def fail(begun: str) -> None:
            if begun == operation:
                raise _PowerCut

        self.disk.fault = fail
        with suppress(_PowerCut):
            self.commit(3)
        self.crash((cut, names_synced))

    def _opened(self) -> Segments:
        self.clock.now += timedelta(microseconds=1)
        segments = segments_on(self.disk, self.clock)
        segments.open()
        return segments


class _PowerCut(Exception):
    pass
