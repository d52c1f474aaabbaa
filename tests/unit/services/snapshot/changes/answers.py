"""Answers about changes, from a table in a directory to the lines that a client would see."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from gateway.domain.grant import Grant
from gateway.services.snapshot.changes.feed import open_feed
from gateway.services.snapshot.changes.question import ChangeCursor, ChangesAsked, ChangeSource
from gateway.services.snapshot.changes.reader import Changes, ChangesHead
from gateway.services.snapshot.changes.reading import ChangeRange
from gateway.services.snapshot.changes.stream import open_stream
from gateway.services.snapshot.log.history import read_history
from gateway.services.snapshot.log.table_log import TableLog
from gateway.services.snapshot.state.store import SnapshotStore
from gateway.v1 import snapshot_pb2 as pb
from tests.builders import STARTED_AT, STEP, TableBuilder, location_of
from tests.fakes.grants import GRANT
from tests.fakes.log_reader import FakeLogReader

PARQUET = pb.ReaderCapabilities()
DELTA = pb.ReaderCapabilities(response_formats=[pb.RESPONSE_FORMAT_DELTA])
BOTH = pb.ReaderCapabilities(response_formats=[pb.RESPONSE_FORMAT_DELTA, pb.RESPONSE_FORMAT_PARQUET])
EXPIRATION = 4_000_000_000_000
FEED_ON = {"configuration": {"delta.enableChangeDataFeed": "true"}}
FEED_PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 4}


class NoMetrics:
    """Implements ``SnapshotMetrics`` and remembers nothing."""

    def observe_load(self, kind: str, elapsed: timedelta, files: int) -> None: ...

    def count_check(self, outcome: str) -> None: ...

    def observe_staleness(self, age: timedelta, freshness: timedelta) -> None: ...

    def count_fallback(self, reason: str) -> None: ...

    def count_hints(self, kind: str, used: int, skipped: int) -> None: ...

    def count_pruned(self, kept: int, dropped: int) -> None: ...

    def set_memory(self, snapshots: int, size: int) -> None: ...

    def count_segment(self, *, is_kept: bool) -> None: ...

    def set_lines(self, size: int) -> None: ...

    def count_index(self, outcome: str) -> None: ...

    def count_blocks(self, read: int, skipped: int) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Answer:
    head: ChangesHead
    pages: Sequence[pb.FilePage]
    stopped_at: ChangeCursor | None

    @property
    def protocol(self) -> dict[str, Any]:
        return dict(json.loads(self.head.lines.splitlines()[0])["protocol"])

    @property
    def metadata(self) -> dict[str, Any]:
        return dict(json.loads(self.head.lines.splitlines()[1])["metaData"])

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for page in self.pages for line in spliced(page).splitlines()]

    @property
    def files(self) -> list[tuple[str, str, int]]:
        """Return action, path and version of each file."""
        return [told for line in self.lines if (told := _told(line)) is not None]


async def source_of(table: TableBuilder, reader: FakeLogReader | None = None, **grant: Any) -> ChangeSource:
    log = TableLog(location=location_of(table), reader=reader or FakeLogReader())
    store = SnapshotStore(memory=2**24, clock=lambda: STARTED_AT, metrics=NoMetrics())
    listing = await store.list_log(log)
    history = await read_history(log, listing, (await store.latest(log)).metadata)
    if history is not None:
        await history.load(range(listing.latest + 1))
    granted: Grant = replace(GRANT, location=log.location, **grant)
    return ChangeSource(log=log, store=store, listing=listing, history=history, grant=granted)


def asked_of(first: int, last: int, **facts: Any) -> ChangesAsked:
    facts["capabilities"] = facts.get("capabilities") or PARQUET
    facts.setdefault("file_id_hash", pb.FILE_ID_HASH_UNSPECIFIED)
    return ChangesAsked(versions=ChangeRange(first=first, last=last), **facts)


async def stream(table: TableBuilder, first: int, last: int, **facts: Any) -> Answer:
    return await answer_of(await open_stream(await source_of(table), asked_of(first, last, **facts)))


async def feed(table: TableBuilder, first: int, last: int, **facts: Any) -> Answer:
    return await answer_of(await open_feed(await source_of(table), asked_of(first, last, **facts)))


async def answer_of(changes: Changes) -> Answer:
    pages = [page async for page in changes.pages()]
    return Answer(head=changes.head, pages=pages, stopped_at=changes.stopped_at)


def spliced(page: pb.FilePage) -> bytes:
    """Return a page's lines with their holes filled: URLs name the location and the path."""
    paths = [iter(group.paths.split(b"\n")) for group in page.groups]
    urls = page.hole_kinds.count(pb.HOLE_URL)
    order = iter(page.hole_groups or bytes(urls))
    parts, start = [], 0
    for hole, kind in zip(page.holes, page.hole_kinds, strict=True):
        parts.append(page.lines[start:hole])
        start = hole
        if kind == pb.HOLE_URL:
            number = next(order)
            parts.append(b"https://%d/%b" % (page.groups[number].location, next(paths[number])))
        else:
            parts.append(b"%d" % EXPIRATION)
    assert all(next(rest, None) is None for rest in paths)
    return b"".join([*parts, page.lines[start:]])


def time_of(version: int) -> int:
    """Return when a version of a built table was committed."""
    return int((STARTED_AT + version * STEP).timestamp() * 1000)


def _told(line: dict[str, Any]) -> tuple[str, str, int] | None:
    [(kind, content)] = line.items()
    if kind in ("metaData", "protocol"):
        return None
    if kind == "file":
        [(action, fields)] = content["deltaSingleAction"].items()
        return action, fields["path"].removeprefix("https://0/"), content["version"]
    return kind, content["url"].removeprefix("https://0/"), content["version"]
