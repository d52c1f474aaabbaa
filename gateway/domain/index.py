"""An index of a table's files: where it is kept, and what its manifest and the pointer to it say."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from gateway.domain.location import Location
from gateway.domain.window import EPOCH

FORMAT: Final = 1
# Below the table's prefix: which index is in force.
CURRENT: Final = "current.json"
# Below an index's name.
MANIFEST: Final = "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPlan:
    """Which files of a log make up a version, by their names below the log's directory."""

    version: int
    # The file that stands for the version, and what it was when it was listed.
    anchor: str
    anchor_size: int
    anchor_at: datetime
    # Parts of a checkpoint, and what it has beside them; empty where the commits say all.
    checkpoint: tuple[str, ...]
    sidecars: tuple[str, ...]
    # In the order of their versions.
    commits: tuple[str, ...]
    # What there is to be read, in bytes, as far as a listing says.
    size: int

    @property
    def stated_anchor(self) -> dict[str, Any]:
        return {"name": self.anchor, "size": self.anchor_size, "modified_at_ms": to_ms(self.anchor_at)}


def table_key(location: Location) -> str:
    """Return the word that stands for a table's place in keys: a digest, whatever the place is called."""
    return hashlib.sha256("\n".join(location.identity).encode()).hexdigest()


def prefix_of(location: Location) -> str:
    """Return what the keys of a table's indexes begin with."""
    return f"index/{table_key(location)}/"


def describe(fields: Mapping[str, Any]) -> bytes:
    """Return a manifest with these members."""
    return json.dumps({"format": FORMAT, **fields}).encode()


def point_to(name: str, manifest: bytes, retired: Mapping[str, int] | None = None) -> bytes:
    """Return the pointer to an index whose manifest has this content.

    It also says since when, in milliseconds, no index in force has files of some runs.
    """
    said = json.loads(manifest)
    stored = {"size": len(manifest), "sha256": hashlib.sha256(manifest).hexdigest()}
    facts = {"version": said["version"], "num_files": said["num_files"]}
    pointer = {"format": FORMAT, "name": name, **facts, "manifest": stored, "retired": dict(retired or {})}
    return json.dumps(pointer).encode()


def to_ms(at: datetime) -> int:
    return (at - EPOCH) // timedelta(milliseconds=1)
