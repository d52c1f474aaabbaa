"""Indexes of tables' logs: what is to be read for one, and what becomes of it when it is made."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import uuid4

from gateway.domain.index import CURRENT, MANIFEST, LogPlan, describe, point_to, prefix_of, table_key, to_ms
from gateway.domain.job import Job, JobKey, JobKind
from gateway.domain.location import Location
from gateway.domain.state_key import is_state_key
from gateway.domain.window import EPOCH
from gateway.errors import NotFound, Unavailable
from gateway.ports import Clock, StateEntry, StateStore
from gateway.work.craft import Plan, Scheduled, Wanted
from gateway.work.places import SparkPlaces

# With so many times the blocks that it would take, an index is made from the log again.
_SCATTERED: Final = 4
# Or with the files of so many before it, of which it needs fewer and fewer.
_MOST_USED: Final = 16
# How long files stay after an index with them was last in force: somebody may be reading them.
_GRACE: Final = timedelta(hours=6)
_PAGE: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSizes:
    # How many files a block has: about a megabyte of them.
    block_rows: int = 8192
    # A log of fewer bytes is read in a fraction of a second, and gets no index.
    small_log: int = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedTable:
    """A table whose log is to have an index, and how often that is made."""

    name: str
    location: Location
    every: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexHome:
    """Where indexes are kept: the state that is shared, and the place of it, as Spark writes there."""

    state: StateStore
    location: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPlanner:
    """Finds out what a log is made up of: all of it, or what came after a version."""

    whole: Callable[[Location], Awaitable[LogPlan]]
    # Takes the version, and size and time of the file that stood for it.
    since: Callable[[Location, int, int, datetime], Awaitable[LogPlan | None]]


_SIZES: Final = IndexSizes()


class IndexCraft:
    """Implements ``Craft``. A table's index is in force when the pointer to it is, and never before."""

    def __init__(
        self,
        *,
        home: IndexHome,
        places: SparkPlaces,
        planner: LogPlanner,
        tables: Sequence[IndexedTable],
        clock: Clock,
        sizes: IndexSizes = _SIZES,
    ) -> None:
        self._state = home.state
        self._state_location = home.location
        self._places = places
        self._planner = planner
        self._tables = {table.name.lower(): table for table in tables}
        self._clock = clock
        self._sizes = sizes

    def scheduled(self) -> Sequence[Scheduled]:
        return [
            Scheduled(wanted=_wanted(table), every=table.every)
            for table in self._tables.values()
            if table.every is not None
        ]

    def named(self, name: str, recipient: str = "") -> Sequence[Wanted]:
        if not name:
            return [_wanted(table) for table in self._tables.values()]
        table = self._tables.get(name.lower())
        if table is None:
            raise NotFound(f"there is no table {name} to make an index of; it is called share.schema.table")
        return [_wanted(table)]

    async def plan(self, job: Job) -> Plan | None:
        """Return what is to be read; None for a small log, and when the latest version has its index."""
        location = self._location(job)
        pointer = await self._pointer(prefix_of(location))
        before = await self._manifest(prefix_of(location), pointer)
        base = None if before is None else await self._since(location, before)
        log = base or await self._planner.whole(location)
        if before is not None and base is not None and base.version == before["version"]:
            return None
        if base is None and log.size < self._sizes.small_log and not log.sidecars:
            return None
        root = self._state_location.child("index").child(table_key(location))
        body = {
            "table": job.key.subject,
            "table_url": self._places.url(location),
            "root_url": self._places.url(root),
            "target_name": f"v{log.version}-{uuid4().hex[:12]}",
            "block_rows": self._sizes.block_rows,
            "version": log.version,
            "anchor": log.stated_anchor,
            "checkpoint": list(log.checkpoint),
            "sidecars": list(log.sidecars),
            "commits": list(log.commits),
            "base": None if before is None or base is None else _base(before),
            # What it takes the place of, if that is still in force then.
            "replaces": pointer.get("name"),
        }
        return Plan(body=body, locations=(location, self._state_location))

    async def publish(self, job: Job, plan: Plan, result: Mapping[str, Any]) -> None:
        # Where it was read: by the configuration of now the table may be elsewhere.
        location = plan.locations[0]
        prefix = prefix_of(location)
        name = str(plan.body["target_name"])
        manifest = describe(
            {
                "location": table_key(location),
                "version": plan.body["version"],
                "anchor": plan.body["anchor"],
                **{key: result[key] for key in _MADE},
            }
        )
        # The same content, where it was published before by a run whose end was not noted.
        await self._state.create(f"{prefix}{name}/{MANIFEST}", manifest)
        await self._point(prefix, plan, manifest)
        await self._clean_up(prefix)

    def _location(self, job: Job) -> Location:
        table = self._tables.get(job.key.subject.lower())
        if table is None:
            raise NotFound(f"table {job.key.subject} is not one that has an index any more")
        return table.location

    async def _since(self, location: Location, before: Mapping[str, Any]) -> LogPlan | None:
        """Return what came after an index; None where it is made from the log again."""
        blocks, files = int(before["blocks"]), int(before["num_files"])
        is_scattered = (
            blocks > _SCATTERED * (files // self._sizes.block_rows + 1) or len(before["uses"]) > _MOST_USED
        )
        if not files or is_scattered:
            return None
        anchor = before["anchor"]
        at = EPOCH + timedelta(milliseconds=anchor["modified_at_ms"])
        return await self._planner.since(location, int(before["version"]), int(anchor["size"]), at)

    async def _point(self, prefix: str, plan: Plan, manifest: bytes) -> None:
        """Put an index in force, unless a newer one is by now."""
        key, name = f"{prefix}{CURRENT}", str(plan.body["target_name"])
        for _ in range(3):
            before = await self._state.get(key)
            if before is None:
                done = await self._state.create(key, point_to(name, manifest))
            elif not _gives_way(_read(before) or {}, plan.body):
                return
            else:
                retired = await self._retired(prefix, _read(before) or {})
                done = await self._state.replace(key, point_to(name, manifest, retired), before.tag)
            if done is not None:
                return
        raise Unavailable("others are putting indexes of the table in force; try again later")

    async def _retired(self, prefix: str, before: Mapping[str, Any]) -> dict[str, int]:
        """Return since when runs' files are not in force: those of the index before, from now on."""
        now = self._clock()
        earlier = {name: at for name, at in _times(before).items() if at > to_ms(now - _GRACE)}
        manifest = await self._manifest(prefix, before)
        names = {str(before.get("name", "")), *(() if manifest is None else manifest["uses"])}
        return {**earlier, **dict.fromkeys(sorted(names), to_ms(now))}

    async def _pointer(self, prefix: str) -> dict[str, Any]:
        """Return what the pointer to the index in force says; nothing where it cannot be read."""
        return _read(await self._state.get(f"{prefix}{CURRENT}")) or {}

    async def _manifest(self, prefix: str, pointer: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return what the manifest of an index says; None where there is none that can be read."""
        key = f"{prefix}{pointer.get('name', '')}/{MANIFEST}"
        manifest = _read(await self._state.get(key)) if is_state_key(key) else None
        is_sound = manifest is not None and all(key in manifest for key in (*_MADE, "version", "anchor"))
        return manifest if is_sound else None

    async def _clean_up(self, prefix: str) -> None:
        """Delete what no index in force has had for a while; a newer one may use blocks of older ones."""
        pointer = await self._pointer(prefix)
        manifest = await self._manifest(prefix, pointer)
        if manifest is None:
            return
        names = {str(manifest["zones"]["key"]).partition("/")[0], *manifest["uses"]}
        retired, latest = _times(pointer), self._clock() - _GRACE
        after = ""
        while found := await self._state.list(prefix, after=after, limit=_PAGE):
            for each in found:
                name, slash, _ = each.key.removeprefix(prefix).partition("/")
                is_old = each.modified_at < latest and retired.get(name, 0) < to_ms(latest)
                if slash and name not in names and is_old:
                    await self._state.delete(each.key)
            after = found[-1].key


_MADE: Final = ("protocol", "metaData", "num_files", "size", "vectors", "columns", "zones", "blocks", "uses")


def _wanted(table: IndexedTable) -> Wanted:
    return Wanted(key=JobKey(kind=JobKind.INDEX, subject=table.name))


def _base(manifest: Mapping[str, Any]) -> dict[str, Any]:
    known = {key: manifest[key] for key in ("version", "protocol", "metaData", "columns")}
    return {**known, "zones": manifest["zones"]["key"]}


def _read(entry: StateEntry | None) -> dict[str, Any] | None:
    try:
        found = None if entry is None else json.loads(entry.content)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _gives_way(before: Mapping[str, Any], plan: Mapping[str, Any]) -> bool:
    """Tell whether an index in force is to be replaced by a planned one."""
    name, version = before.get("name"), before.get("version")
    if name == plan["target_name"]:
        return False
    # The versions of a table that was made anew in its place are lower, and say nothing of the one before.
    is_seen = name is not None and name == plan.get("replaces")
    return is_seen or not isinstance(version, int) or version <= int(plan["version"])


def _times(pointer: Mapping[str, Any]) -> dict[str, int]:
    retired = pointer.get("retired")
    found = retired if isinstance(retired, dict) else {}
    return {name: at for name, at in found.items() if isinstance(at, int)}
