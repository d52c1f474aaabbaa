"""Refreshes of views: what a run is told, and what becomes of what it made."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from gateway.domain.job import Job
from gateway.domain.location import Location
from gateway.domain.manifest import (
    Manifest,
    ManifestError,
    Retired,
    SourceVersion,
    decode_manifest,
    is_directory_name,
    manifest_key,
)
from gateway.domain.name import TableName
from gateway.domain.view import Showing
from gateway.domain.view_job import view_job_key, view_job_parameters, view_name_of
from gateway.errors import Internal, InvalidArgument, NotFound, Unavailable
from gateway.ports import Clock, StateEntry, StateStore, Storages
from gateway.work.craft import Plan, Scheduled, Wanted
from gateway.work.former import FormerShowings
from gateway.work.places import SparkPlaces

# Between what replicas remember of a showing and what they hand out for it: longer than all of it together.
MARGIN: Final = timedelta(minutes=15)

_PARTS: Final = 3
_ATTEMPTS: Final = 10

log = logging.getLogger(__name__)


class ShownViews(Protocol):
    """The showings that there are by the configuration of this moment."""

    def find(self, name: TableName, recipient: str) -> Showing | None: ...

    def of_view(self, name: TableName) -> Iterator[Showing]: ...

    def all(self) -> Iterator[Showing]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Lives:
    """How long what was handed out, and what was left behind, may still be in use."""

    # Of URLs; that of credentials is the storage's.
    urls: timedelta
    # Of a run that nobody hears of any more.
    runs: timedelta


class ViewCraft:
    """Plans refreshes by the configuration, and makes known what they made by compare-and-swap."""

    def __init__(
        self, *, views: ShownViews, state: StateStore, storages: Storages, lives: Lives, clock: Clock
    ) -> None:
        self._views = views
        self._state = state
        self._storages = storages
        self._places = SparkPlaces(storages)
        self._former = FormerShowings(state, clock)
        self._lives = lives
        self._clock = clock

    def scheduled(self) -> Sequence[Scheduled]:
        return [
            Scheduled(wanted=_wanted(showing), every=showing.view.refresh_every)
            for showing in self._views.all()
            if showing.view.refresh_every is not None
        ]

    def named(self, name: str, recipient: str = "") -> Sequence[Wanted]:
        parts = name.rsplit(".", _PARTS - 1)
        if len(parts) != _PARTS:
            raise InvalidArgument(f"a view is named share.schema.view, not {name!r}")
        found = list(self._views.of_view(TableName(*parts)))
        if not found:
            raise NotFound(f"there is no view {name}, or nobody who may see it")
        chosen = [showing for showing in found if not recipient or showing.recipient == recipient]
        if not chosen:
            raise NotFound(f"the view {name} is not shown to {recipient!r} in particular")
        return [_wanted(showing) for showing in chosen]

    async def plan(self, job: Job) -> Plan | None:
        """Return what makes the showing; None where the configuration knows it no more."""
        showing = self._find(job)
        if showing is None:
            log.info("a view is not refreshed: it is not shown any more, or in another way")
            return None
        entry = await self._state.get(manifest_key(job.key.subject))
        manifest = _decoded(entry, showing)
        now = self._clock()
        retired = manifest.retired if manifest is not None else ()
        if manifest is not None and manifest.is_hidden(now):
            # Its directory may be going at this moment: nothing is added to that.
            manifest = None
        gone = {old.name for old in retired if old.at + self._kept_for(showing) <= now}
        root = showing.view.root.child(job.key.subject)
        body = {
            "query": showing.view.query,
            "sources": [
                {
                    "name": str(source.name),
                    "url": self._places.url(source.location),
                    "allowed": [self._places.url(location) for location in source.locations],
                }
                for source in showing.view.sources
            ],
            "parameters": {f"property_{number}": value for number, value in enumerate(showing.values)},
            "appendable": showing.view.is_appendable,
            "timed": showing.view.uses_clock,
            "root_url": self._places.url(root),
            "current": None if manifest is None else _current(manifest),
            "fresh_name": f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}",
            "app_id": job.key.subject,
            "delete": sorted(gone),
            "keep": sorted({old.name for old in retired} - gone),
            "former": await self._going(showing),
            # Where it cannot be read what is shown, anything may be.
            "orphans_before_ms": (
                None if entry is not None and manifest is None else self._orphans_before(showing, now)
            ),
        }
        reads = _places_read(showing)
        return Plan(body=body, locations=(*reads, root), reads=reads)

    async def publish(self, job: Job, plan: Plan, result: Mapping[str, Any]) -> None:
        """Have what was made be shown, unless the configuration means something else by now."""
        showing = self._find(job)
        if showing is None:
            log.info("a view that was refreshed is not shown any more, or in another way")
            return
        made = _Made.read(result, plan)
        for fingerprint in made.forgotten:
            await self._former.forget(fingerprint, self._current())
        key = manifest_key(job.key.subject)
        for _ in range(_ATTEMPTS):
            entry = await self._state.get(key)
            manifest = self._next(showing, job, made, _decoded(entry, showing))
            if manifest is None or await self._put(key, manifest, entry):
                return
        raise Unavailable(f"the manifest of the view {showing.name} changes too often to be replaced")

    def _find(self, job: Job) -> Showing | None:
        showing = self._views.find(view_name_of(job.parameters), job.parameters.get("recipient", ""))
        # What a recipient is shown follows from all of this: what was made for another is not for this one.
        return showing if showing is not None and showing.fingerprint == job.key.subject else None

    def _next(self, showing: Showing, job: Job, made: _Made, manifest: Manifest | None) -> Manifest | None:
        """Return the manifest with what was made; None where what is shown is as new already."""
        # It began after it was asked for, whatever a slow clock of the worker says.
        started_at = max(job.started_at or job.requested_at, job.requested_at)
        # What is of the future was made by a clock that was ahead: it must not be in the way until then.
        if manifest is not None and started_at <= manifest.refreshed_at <= self._clock():
            return None if manifest.hidden_from is None else replace(manifest, hidden_from=None)
        retired = {entry.name: entry for entry in manifest.retired} if manifest is not None else {}
        if manifest is not None and manifest.name != made.name:
            retired[manifest.name] = Retired(name=manifest.name, at=self._clock())
        for name in (*made.deleted, made.name):
            retired.pop(name, None)
        return Manifest(
            fingerprint=job.key.subject,
            view=str(showing.name),
            recipient=showing.recipient,
            name=made.name,
            version=made.version,
            sources=made.sources,
            refreshed_at=started_at,
            retired=tuple(retired.values()),
        )

    async def _going(self, showing: Showing) -> list[str]:
        return sorted(await self._former.going(showing.name, self._current(), self._kept_for(showing)))

    def _current(self) -> set[str]:
        return {one.fingerprint for one in self._views.all()}

    async def _put(self, key: str, manifest: Manifest, entry: StateEntry | None) -> bool:
        content = manifest.encode()
        if entry is None:
            return await self._state.create(key, content) is not None
        return await self._state.replace(key, content, entry.tag) is not None

    def _orphans_before(self, showing: Showing, now: datetime) -> int:
        # Besides the time of a run: a directory may have been shown by a manifest that was lost since.
        return _milliseconds(now - self._lives.runs - MARGIN - self._kept_for(showing))

    def _kept_for(self, showing: Showing) -> timedelta:
        storage = self._storages.find(showing.view.root)
        credentials = storage.credential_life if storage is not None else timedelta(0)
        return max(credentials, self._lives.urls) + MARGIN


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """What a run says that it made."""

    name: str
    version: int
    sources: Mapping[str, SourceVersion]
    deleted: tuple[str, ...]
    # Former showings of the view, by their fingerprints.
    forgotten: tuple[str, ...]

    @classmethod
    def read(cls, result: Mapping[str, Any], plan: Plan) -> _Made:
        """Return it, if it is an answer to the plan."""
        try:
            made = cls(
                name=str(result["name"]),
                version=int(result["version"]),
                sources={
                    str(name): SourceVersion(version=int(source["version"]), id=str(source["id"]))
                    for name, source in result["sources"].items()
                },
                deleted=tuple(map(str, result.get("deleted", ()))),
                forgotten=tuple(map(str, result.get("forgotten", ()))),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise Internal("a refresh has answered with something else than a result") from exc
        current = plan.body["current"]
        expected = {plan.body["fresh_name"], current["name"] if current else plan.body["fresh_name"]}
        if made.name not in expected or not is_directory_name(made.name):
            raise Internal("a refresh has made something else than it was told to")
        # It may delete no more than it was told to: the rest is still to be kept.
        return replace(
            made,
            deleted=_among(plan.body["delete"], made.deleted),
            forgotten=_among(plan.body["former"], made.forgotten),
        )


def _among(allowed: Collection[str], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name in allowed)


def _wanted(showing: Showing) -> Wanted:
    return Wanted(key=view_job_key(showing), parameters=view_job_parameters(showing))


def _decoded(entry: StateEntry | None, showing: Showing) -> Manifest | None:
    if entry is None:
        return None
    try:
        return decode_manifest(entry.content, showing)
    except ManifestError as exc:
        # What it showed is made anew, and takes its place.
        log.error("%s", exc)  # noqa: TRY400 -- what is kept there is not for the log
        return None


def _current(manifest: Manifest) -> dict[str, Any]:
    return {
        "name": manifest.name,
        "version": manifest.version,
        "sources": {
            name: {"version": source.version, "id": source.id} for name, source in manifest.sources.items()
        },
    }


def _places_read(showing: Showing) -> tuple[Location, ...]:
    return tuple(location for source in showing.view.sources for location in source.locations)


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
