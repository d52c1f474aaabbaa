"""Jobs as they are kept: one JSON object each, and the keys under which they and their markers are."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from datetime import MAXYEAR, UTC, datetime
from typing import Any, Final

from gateway.domain.job import Job, JobKey, JobKind, JobState

RECORDS: Final = "jobs"
MARKERS: Final = "queue"

_FORMAT: Final = 1
_TIMES: Final = ("requested_at", "started_at", "finished_at", "leased_until", "not_before")
_NUMBERS: Final = ("sequence", "done_sequence", "claimed_sequence", "attempts")
_TEXTS: Final = ("error", "worker")
# Markers have the count in their names, which are not endless.
_TOO_MANY: Final = 2**63


def record_key(key: JobKey) -> str:
    return f"{RECORDS}/{key.kind}/{_name(key)}.json"


def marker_prefix(key: JobKey, sequence: int) -> str:
    """Return what the keys of markers begin with that are there while a job is open for this request."""
    return f"{MARKERS}/{key.kind}/{_name(key)}.{sequence}."


def new_marker_key(key: JobKey, sequence: int) -> str:
    """Return the key of a marker that was never there: who removes another by its name cannot mean it."""
    return f"{marker_prefix(key, sequence)}{secrets.token_hex(4)}"


def read_marker(key: str) -> tuple[str, int] | None:
    """Return the key of a marker's record, and the request that it is for; None for what is no marker."""
    directory, _, name = key.rpartition("/")
    digest, _, rest = name.partition(".")
    sequence = rest.partition(".")[0]
    if not sequence.isdecimal():
        return None
    return f"{RECORDS}{directory.removeprefix(MARKERS)}/{digest}.json", int(sequence)


def to_record(job: Job) -> bytes:
    times = {name: value.astimezone(UTC).isoformat() for name in _TIMES if (value := getattr(job, name))}
    content: dict[str, object] = {
        "format": _FORMAT,
        "kind": job.key.kind,
        "subject": job.key.subject,
        "state": job.state,
        "parameters": dict(job.parameters),
        **{name: getattr(job, name) for name in (*_NUMBERS, *_TEXTS)},
        **times,
    }
    return json.dumps(content, sort_keys=True).encode()


def from_record(content: bytes) -> Job | None:
    """Return the job; None for what is none, which no run of ours has written."""
    try:
        return _job(json.loads(content))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def _job(found: Mapping[str, Any]) -> Job:
    fields: dict[str, Any] = {name: _time(found[name]) for name in _TIMES if name in found}
    fields |= {name: _number(found[name]) for name in _NUMBERS}
    fields |= {name: str(found[name]) for name in _TEXTS}
    return Job(
        key=JobKey(kind=JobKind(found["kind"]), subject=_subject(found["subject"])),
        state=JobState(found["state"]),
        parameters={str(name): str(value) for name, value in found["parameters"].items()},
        **fields,
    )


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("a time without a zone")
    if found.year == MAXYEAR:
        raise ValueError("a time that nothing can be added to")
    return found.astimezone(UTC)


def _number(value: Any) -> int:
    number = int(value)
    if not 0 <= number < _TOO_MANY:
        raise ValueError("not a count")
    return number


def _subject(value: object) -> str:
    # Raises where it could not be: keys are made of its bytes.
    return str(value).encode().decode()


def _name(key: JobKey) -> str:
    return hashlib.sha256(key.subject.encode()).hexdigest()
