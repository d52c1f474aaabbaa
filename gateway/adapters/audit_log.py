"""The audit log: events as lines of JSON in segments, on disk before a grant leaves."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Protocol, Self, TypeVar

from gateway.adapters.audit_disk import LocalDisk
from gateway.adapters.audit_segment import Segments
from gateway.domain.audit import SCHEMA_VERSION, AuditEvent, AuditKind
from gateway.errors import Unavailable
from gateway.ports import AuditLog, Clock

log = logging.getLogger(__name__)

T = TypeVar("T")


class AuditMetrics(Protocol):
    def count_audit_event(self, kind: AuditKind) -> None: ...

    def count_audit_failure(self) -> None: ...

    def count_audit_drops(self, events: int) -> None: ...

    def set_audit_backlog(self, size: int) -> None: ...

    def watch_audit_wait(self, wait: Callable[[], float]) -> None:
        """Show for how many seconds the oldest event has waited, whenever somebody looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """Where the segments lie, whose they are, and when one is closed."""

    directory: Path
    replica: str
    segment_bytes: int
    segment_age: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """How long and how much may wait."""

    # Noted events are written after this even if nothing else is.
    flush_interval: timedelta = timedelta(seconds=1)
    buffer_bytes: int = 8 * 1024 * 1024
    # For a grant's event: a disk that hangs gives no error, and whoever waits for it would wait for as long.
    patience: timedelta = timedelta(seconds=5)
    # For a replica that starts beside us and is just looking through what we left behind.
    lock_pauses: tuple[timedelta, ...] = tuple(timedelta(milliseconds=span) for span in (100, 200, 400, 800))


PACING: Final = Pacing()


class SegmentedAuditLog:
    """Keeps events in segments while its block runs. Events that come while the disk is busy share a write.

    Noted events wait for the next write, or for the flush interval, in a buffer that drops its oldest.
    A reader finds each acknowledged event once; after a crash, or where the disk hung during a write, it may
    also find some that were refused.
    """

    def __init__(
        self,
        segments: Segments,
        metrics: AuditMetrics,
        *,
        replica: str,
        pacing: Pacing = PACING,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._segments = segments
        self._metrics = metrics
        self._replica = replica
        self._pacing = pacing
        self._monotonic = monotonic
        self._notes = _Notes(pacing.buffer_bytes)
        self._appends: list[_Line] = []
        self._append_bytes = 0
        # What is being written was given up by whoever appended it, by the events' ids.
        self._given_up: dict[str, _Line] = {}
        self._writing_since: float | None = None
        # Since when the oldest event waits; read by another thread.
        self._waits_since: float | None = None
        self._wake = asyncio.Event()
        self._open = False
        self._failing = False
        self._dropped = 0
        self._writer: asyncio.Task[None] | None = None
        # A thread of its own: other work must not keep a grant waiting.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="audit")

    async def __aenter__(self) -> Self:
        await self._open_segments()
        self._open = True
        self._metrics.watch_audit_wait(self._longest_wait)
        self._writer = asyncio.create_task(self._write())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._open = False
        self._wake.set()
        if self._writer is not None:
            await self._writer

    async def append(self, event: AuditEvent) -> None:
        if not self._open:
            raise _refusal()
        acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line = self._line(event, acknowledged)
        self._appends.append(line)
        self._append_bytes += len(line.text)
        self._report_backlog()
        self._wake.set()
        try:
            async with asyncio.timeout(self._pacing.patience.total_seconds()):
                await acknowledged
        except TimeoutError:
            if line.is_kept:
                # At the last moment.
                return
            if line.is_kept is None:
                self._give_up(event, line)
            raise _refusal() from None

    def note(self, event: AuditEvent) -> None:
        if not self._open:
            self._metrics.count_audit_drops(1)
            return
        if (written := self._given_up.pop(event.id, None)) is not None:
            # It is on its way to the disk, and waits on only if it does not get there.
            written.is_noted = True
            return
        self._buffer([self._line(event)])
        self._report_backlog()

    async def _write(self) -> None:
        try:
            while self._open:
                await self._wait()
                await self._commit()
        finally:
            self._open = False
            await self._commit()
            self._drop(self._notes.take())
            await self._close_segments()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._pacing.flush_interval.total_seconds()):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()

    async def _commit(self) -> None:
        """Write all that waits. Without anything waiting, segments that are due are still closed."""
        notes, appends = self._notes.take(), self._appends
        self._appends, self._append_bytes = [], 0
        self._writing_since = min((line.at for line in (*notes, *appends)), default=None)
        try:
            await self._in_thread(lambda: self._segments.commit(_joined(notes, appends)))
        except Exception as exc:  # noqa: BLE001 -- whatever fails here, nobody may wait for ever
            self._refuse(notes, appends, exc)
        else:
            self._acknowledge(notes, appends)
        self._given_up.clear()
        self._writing_since = None
        self._report_backlog()

    def _acknowledge(self, notes: Sequence[_Line], appends: Sequence[_Line]) -> None:
        if self._failing:
            log.warning("the audit log can be written again", extra={"dropped": self._dropped})
            self._failing, self._dropped = False, 0
        for line in (*notes, *appends):
            self._metrics.count_audit_event(line.kind)
            line.is_kept = True
            if line.acknowledged is not None and not line.acknowledged.done():
                line.acknowledged.set_result(None)

    def _refuse(self, notes: Sequence[_Line], appends: Sequence[_Line], exc: Exception) -> None:
        self._metrics.count_audit_failure()
        if not self._failing:
            self._failing = True
            log.error("the audit log cannot be written", exc_info=exc)
        self._buffer([*notes, *(line for line in appends if line.is_noted)], first=True)
        for line in appends:
            line.is_kept = False
            if line.acknowledged is not None and not line.acknowledged.done():
                line.acknowledged.set_exception(_refusal())

    def _give_up(self, event: AuditEvent, line: _Line) -> None:
        """Refuse a grant whose event is not on disk by now; the write that hangs goes on in its thread."""
        self._metrics.count_audit_failure()
        if not self._failing:
            self._failing = True
            log.error("the audit log's disk does not answer")
        if line in self._appends:
            self._appends.remove(line)
            self._append_bytes -= len(line.text)
        else:
            self._given_up[event.id] = line
        self._report_backlog()

    def _buffer(self, lines: Sequence[_Line], *, first: bool = False) -> None:
        self._drop(self._notes.put(lines, first=first))

    def _drop(self, lines: Sequence[_Line]) -> None:
        if lines and not self._dropped:
            log.error("audit events are dropped unwritten")
        self._dropped += len(lines)
        self._metrics.count_audit_drops(len(lines))

    def _report_backlog(self) -> None:
        self._metrics.set_audit_backlog(self._notes.size + self._append_bytes)
        first = (self._writing_since, self._notes.since, self._appends[0].at if self._appends else None)
        self._waits_since = min((at for at in first if at is not None), default=None)

    def _longest_wait(self) -> float:
        since = self._waits_since
        return 0.0 if since is None else self._monotonic() - since

    def _line(self, event: AuditEvent, acknowledged: asyncio.Future[None] | None = None) -> _Line:
        return _Line(
            text=to_line(event, self._replica),
            kind=event.kind,
            at=self._monotonic(),
            acknowledged=acknowledged,
        )

    async def _open_segments(self) -> None:
        try:
            for pause in self._pacing.lock_pauses:
                try:
                    return await self._in_thread(self._segments.open)
                except BlockingIOError:
                    await asyncio.sleep(pause.total_seconds())
            await self._in_thread(self._segments.open)
        except OSError as exc:
            self._thread.shutdown(wait=False)
            raise Unavailable(f"the audit log cannot be opened: {exc}") from exc

    async def _close_segments(self) -> None:
        try:
            await self._in_thread(self._segments.close)
        except OSError:
            log.exception("the last segment of the audit log stays open until the next start")
        self._thread.shutdown(wait=False)

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)


class LenientAuditLog:
    """Lets grants go when their events cannot be written at once, and keeps trying to write them."""

    def __init__(self, strict: AuditLog) -> None:
        self._strict = strict

    async def append(self, event: AuditEvent) -> None:
        try:
            await self._strict.append(event)
        except Unavailable:
            self._strict.note(event)

    def note(self, event: AuditEvent) -> None:
        self._strict.note(event)


def audit_log(settings: AuditSettings, metrics: AuditMetrics, clock: Clock) -> SegmentedAuditLog:
    """Return the log of a directory, to be entered."""
    segments = Segments(
        LocalDisk(settings.directory),
        replica=settings.replica,
        max_bytes=settings.segment_bytes,
        max_age=settings.segment_age,
        clock=clock,
    )
    return SegmentedAuditLog(segments, metrics, replica=settings.replica)


def to_line(event: AuditEvent, replica: str) -> bytes:
    """Return an event as a line of ASCII; every field is there, whether it has a value or not."""
    # Put together by hand, from the parts that the json module is made of: a grant waits for its line.
    parts = [_HEAD, _text(event.id), ',"replica":', _text(replica)]
    for key, name in _KEYS:
        parts.append(key)
        parts.append(_json(getattr(event, name)))
    text = "".join(parts)
    if _SURROGATE in text:
        text = _mended(text)
    return f"{text}}}\n".encode("ascii")


@dataclass(eq=False, slots=True, kw_only=True)
class _Line:
    text: bytes
    kind: AuditKind
    # Since when it waits.
    at: float
    # Set when the line is on disk; None for an event that was only noted.
    acknowledged: asyncio.Future[None] | None
    # Whether it is to be kept even if nobody waits for it any more.
    is_noted: bool = False
    # Whether it got to the disk; None before that is known.
    is_kept: bool | None = None


class _Notes:
    """Lines that wait for a write, up to a size."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lines: deque[_Line] = deque()
        self.size = 0

    @property
    def since(self) -> float | None:
        return self._lines[0].at if self._lines else None

    def put(self, lines: Sequence[_Line], *, first: bool) -> Sequence[_Line]:
        """Add lines, before or after the others, and return the oldest ones that had to go for it."""
        if first:
            self._lines.extendleft(reversed(lines))
        else:
            self._lines.extend(lines)
        self.size += sum(len(line.text) for line in lines)
        dropped = []
        while self.size > self._limit:
            dropped.append(self._lines.popleft())
            self.size -= len(dropped[-1].text)
        return dropped

    def take(self) -> Sequence[_Line]:
        lines, self._lines, self.size = tuple(self._lines), deque(), 0
        return lines


def _joined(notes: Sequence[_Line], appends: Sequence[_Line]) -> bytes:
    return b"".join(line.text for line in (*notes, *appends))


def _json(value: object) -> str:
    if isinstance(value, str):
        return _text(value)
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, datetime):
        return f'"{value.astimezone(UTC).isoformat(timespec="microseconds")[:-6]}Z"'
    if isinstance(value, tuple):
        return f"[{','.join(_text(part) for part in value)}]"
    raise TypeError(f"an audit event cannot hold a {type(value).__name__}")


def _mended(line: str) -> str:
    """Return a line without lone surrogates, which stand for a header's stray bytes and choke readers."""
    record = json.loads(f"{line}}}", object_pairs_hook=lambda pairs: {key: _paired(at) for key, at in pairs})
    return json.dumps(record, separators=(",", ":"))[:-1]


def _paired(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\ufffd", "?")
    if isinstance(value, list):
        return [_paired(part) for part in value]
    return value


_text: Final = json.encoder.encode_basestring_ascii
_HEAD: Final = f'{{"schema_version":{SCHEMA_VERSION},"id":'
_KEYS: Final = tuple((f',"{field.name}":', field.name) for field in fields(AuditEvent) if field.name != "id")
# How the encoder begins the half of a pair, or a half that is alone.
_SURROGATE: Final = "\\ud"


def _refusal() -> Unavailable:
    return Unavailable("access cannot be recorded at the moment, so none is given; try again later")
