"""What the tables of usage should say, added up from events in plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

Event = Mapping[str, Any]

_MODES = {
    "queryTable": "url",
    "queryTableChanges": "url",
    "getQueryInfo": "url",
    "generateTemporaryTableCredentials": "dir",
    "getAwsCredentials": "dir",
}
_SAME = ("replica", "request_id", "operation", "principal", "share", "schema", "table")


def distinct(events: Iterable[Event]) -> list[Event]:
    return list({event["id"]: event for event in events}.values())


def usage_daily(events: Iterable[Event]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return by day, recipient, folded table and mode what was counted."""
    found: dict[tuple[str, ...], dict[str, Any]] = defaultdict(lambda: defaultdict(int) | {"latencies": []})
    kept = distinct(events)
    opened = _opened_modes(kept)
    for event in kept:
        if event["kind"] not in ("grant", "request", "denial"):
            continue
        row = found[_key(event, opened)]
        is_grant = event["kind"] == "grant"
        counts = not is_grant or _closing(event, kept) is None
        unfinished = is_grant and counts and event["mode"] == "url" and not _is_catalogs(event)
        well = event["outcome"].lower() == "ok" and not unfinished and event["kind"] != "denial"
        row["requests"] += counts
        row["grants"] += is_grant
        row["credentials"] += is_grant and "dir" in event["mode"]
        row["files"] += event["files"] if counts else 0
        row["bytes_granted"] += event["file_bytes"] if counts else 0
        row["denials"] += event["kind"] == "denial"
        row["failures"] += counts and not well and event["kind"] != "denial"
        if counts and well:
            row["latencies"].append(event["duration_ms"])
    return {key: _finished(row) for key, row in found.items()}


def ledger(events: Iterable[Event]) -> set[tuple[Any, ...]]:
    """Return event, location, recipient and the times between which it was opened."""
    kept = distinct(events)
    return {
        (event["id"], location, event["principal"], at(event["at"]), _end(event, kept))
        for event in kept
        if event["kind"] == "grant" and event["expires_at"]
        for location in event["locations"]
    }


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _end(event: Event, events: Sequence[Event]) -> datetime:
    closing = _closing(event, events)
    ends = [event["expires_at"], closing["expires_at"] if closing else None]
    return max(at(end) for end in ends if end)


def _closing(grant: Event, events: Sequence[Event]) -> Event | None:
    if _is_catalogs(grant) or grant["mode"] != "url":
        return None
    began = at(grant["at"])
    closings = [
        event
        for event in events
        if event["kind"] in ("request", "denial")
        and all(event[name] == grant[name] for name in _SAME)
        and began <= at(event["at"])
    ]
    first = min(closings, key=lambda event: (at(event["at"]), event["id"]), default=None)
    return first if first is not None and at(first["at"]) < began + timedelta(days=1) else None


def _is_catalogs(event: Event) -> bool:
    return bool(event["operation"].startswith("catalog."))


def _opened_modes(events: Sequence[Event]) -> dict[str, str]:
    """Return by closing event the mode of what it closes."""
    grants = [event for event in events if event["kind"] == "grant"]
    pairs = ((grant, _closing(grant, events)) for grant in grants)
    return {closing["id"]: grant["mode"] for grant, closing in pairs if closing is not None}


def _key(event: Event, opened: Mapping[str, str]) -> tuple[str, ...]:
    # What strangers ask for is not counted by its name.
    names = [event[name].lower() if event["principal"] else "" for name in ("share", "schema", "table")]
    mode = event["mode"] or opened.get(event["id"]) or _MODES.get(event["operation"], "none")
    return (at(event["at"]).date().isoformat(), event["principal"], *names, mode)


def _finished(row: dict[str, Any]) -> dict[str, Any]:
    latencies = sorted(row.pop("latencies"))
    return dict(row) | {"p50_ms": _percentile(latencies, 0.5), "p99_ms": _percentile(latencies, 0.99)}


def _percentile(values: Sequence[int], part: float) -> float | None:
    if not values:
        return None
    place = (len(values) - 1) * part
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)
