"""What changes a history of commits comes to, told action by action in plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import md5, sha256
from typing import Any

from tests.unit.services.snapshot.changes.answers import EXPIRATION, time_of

Action = Mapping[str, Any]

_FORMATTED = {"add": "add", "remove": "remove", "cdc": "cdf"}
_PARQUET_FIELDS = ("partitionValues", "size", "stats")


def tell_stream(commits: Sequence[Sequence[Action]], first: int, last: int, *, delta: bool) -> list[Action]:
    lines: list[Action] = []
    for version in range(first, last + 1):
        lines += _metadata(commits[version], version) if version > first else []
        lines += _files(commits[version], version, ("add", "remove"), delta=delta)
    return lines


def tell_feed(
    commits: Sequence[Sequence[Action]], first: int, last: int, *, delta: bool, with_metadata: bool
) -> list[Action]:
    lines: list[Action] = []
    for version in range(first, last + 1):
        lines += _metadata(commits[version], version) if version > first and with_metadata else []
        has_change_data = any("cdc" in action for action in commits[version])
        kinds = ("cdc",) if has_change_data else ("add", "remove")
        lines += _files(commits[version], version, kinds, delta=delta)
    return lines


def _metadata(actions: Sequence[Action], version: int) -> list[Action]:
    """Return that there is metadata: how it is spelled is the head's affair."""
    return [{"metaData": version}] if any("metaData" in action for action in actions) else []


def _files(actions: Sequence[Action], version: int, kinds: Sequence[str], *, delta: bool) -> list[Action]:
    told = []
    for kind in kinds:
        for action in actions:
            fields = action.get(kind)
            if fields is not None and (kind == "cdc" or fields["dataChange"]):
                told.append(_delta(kind, fields, version) if delta else _parquet(kind, fields, version))
    return told


def _parquet(kind: str, fields: Action, version: int) -> Action:
    line = {
        "url": f"https://0/{fields['path']}",
        "id": md5(fields["path"].encode(), usedforsecurity=False).hexdigest(),
        "version": version,
        "timestamp": time_of(version),
        "expirationTimestamp": EXPIRATION,
    }
    told = {name: fields[name] for name in _PARQUET_FIELDS if name in fields}
    return {_FORMATTED[kind]: {**line, **told}}


def _delta(kind: str, fields: Action, version: int) -> Action:
    action = {**fields, "path": f"https://0/{fields['path']}"}
    return {
        "file": {
            "id": sha256(fields["path"].encode()).hexdigest(),
            "version": version,
            "timestamp": time_of(version),
            "expirationTimestamp": EXPIRATION,
            "deltaSingleAction": {kind: action},
        }
    }
