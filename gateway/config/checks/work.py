"""What workers and replicas share: where it is, who opens it, and how long a lease lasts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from gateway.config.checks.storage import Coverage, find_location, location_or_none
from gateway.config.path import Path
from gateway.config.report import Report
from gateway.config.schema import Config, ServiceName
from gateway.domain.location import Location

_SHORTEST_LEASE: Final = timedelta(seconds=5)
_LONGEST_LEASE: Final = timedelta(hours=1)
_SHORTEST_JOB: Final = timedelta(minutes=1)


def check_work(config: Config, report: Report) -> None:
    pipeline = config.pipeline
    if not _SHORTEST_LEASE <= pipeline.lease_time <= _LONGEST_LEASE:
        report.fault(("pipeline", "leaseTime"), "must be from 5s to 1h")
    if pipeline.job_timeout < max(_SHORTEST_JOB, pipeline.lease_time):
        report.fault(("pipeline", "jobTimeout"), "must be at least 1m, and no shorter than leaseTime")
    _check_places(config, report)
    _check_split(config, report)


def _check_places(config: Config, report: Report) -> None:
    shared = list(_shared(config))
    for path, text, what in (
        (("state", "location"), config.state.location, "the state"),
        (("usage", "landing"), config.usage.landing, "what lands"),
    ):
        location = find_location(text, path, report) if text else None
        if location is not None:
            _check_apart(location, what, path, shared, report)
            if location.scheme != "file":
                _check_entry(config, location, path, shared, report)
    if config.usage.location:
        find_location(config.usage.location, ("usage", "location"), report)


def _check_apart(
    location: Location, what: str, path: Path, shared: list[tuple[str, Location]], report: Report
) -> None:
    for name, other in shared:
        if location.covers(other) or other.covers(location):
            message = f"must be apart from what is shared: {what} would lie in or around {name}; move it"
            report.fault(path, message)
            return


def _check_entry(
    config: Config, location: Location, path: Path, shared: list[tuple[str, Location]], report: Report
) -> None:
    """Report an entry that opens tables: the services that face the network hold its identity."""
    if not report.is_intact(("storages",)):
        return
    entries = config.storages or ()
    coverage = Coverage(entries)
    number = coverage.find(location)
    if number is None:
        report.fault(path, "is below no prefix of storages; add a storage for it alone, or use a directory")
        return
    for name, other in shared:
        if coverage.find(other) == number:
            report.fault(
                path,
                f"needs a storage of its own: storages[{number}] ({entries[number].name}) opens {name} too, "
                "and its identity is held by services that must not; add an entry with a longer prefix and "
                "keys for that alone",
            )
            return


def _check_split(config: Config, report: Report) -> None:
    is_whole = set(config.services.run) == set(ServiceName)
    if is_whole or config.state.location or not report.is_intact(("services", "run"), ("shares",)):
        return
    if any(_stateful(config)):
        report.fault(
            ("state", "location"),
            "is missing: views and indexes are shared by processes that run apart; name a directory that "
            "all of them see, or a place in an object store",
        )


def _stateful(config: Config) -> Iterator[bool]:
    for share in config.shares:
        for schema in share.schemas:
            yield bool(schema.views)
            yield any(table.index_every is not None for table in schema.tables)


def _shared(config: Config) -> Iterator[tuple[str, Location]]:
    """Return every place that recipients may be given access to, with its name for people."""
    for share in config.shares:
        for schema in share.schemas:
            for table in schema.tables:
                for text in (table.location, *table.auxiliary_locations):
                    if (location := location_or_none(text)) is not None:
                        yield f"{share.name}.{schema.name}.{table.name}", location
            for view in schema.views:
                if (location := location_or_none(view.location)) is not None:
                    yield f"{share.name}.{schema.name}.{view.name}", location
