"""What is kept of a showing: where it was last made, of what, and what of it is yet to go."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import MAXYEAR, UTC, datetime
from typing import Any, Final

from gateway.domain.location import Location
from gateway.domain.view import Materialisation, Showing

FORMAT: Final = 1
# Below which all manifests are, in the state store.
MANIFESTS: Final = "views/"

# One step of a path and nothing more: whoever could write here must not lead out of a view's directory.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_MANIFEST_KEY: Final = re.compile(rf"{MANIFESTS}([0-9a-f]{{32}})[.]json")


class ManifestError(ValueError):
    """What is kept is not a manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceVersion:
    """A state of a source: its version, and the id of the Delta table that had it."""

    version: int
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retired:
    """A directory that is shown no more, and may go once nobody can read it."""

    name: str
    # When credentials and URLs for it were handed out for the last time.
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The current state of a showing. Holds no value of a property."""

    fingerprint: str
    # The view's name and the recipient's, for people.
    view: str
    recipient: str = ""
    # The directory below the showing's own.
    name: str
    version: int
    sources: Mapping[str, SourceVersion] = field(default_factory=dict)
    # What it shows is not older than this.
    refreshed_at: datetime
    retired: tuple[Retired, ...] = ()
    # From then on it is not shown, whoever asks: no configuration has had the showing for a while.
    hidden_from: datetime | None = None

    def is_hidden(self, now: datetime) -> bool:
        return self.hidden_from is not None and self.hidden_from <= now

    def materialisation(self, root: Location) -> Materialisation:
        return Materialisation(
            fingerprint=self.fingerprint,
            location=root.child(self.fingerprint).child(self.name),
            version=self.version,
            refreshed_at=self.refreshed_at,
        )

    def encode(self) -> bytes:
        value = {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "view": self.view,
            "recipient": self.recipient,
            "name": self.name,
            "version": self.version,
            "sources": {
                name: {"version": source.version, "id": source.id} for name, source in self.sources.items()
            },
            "refreshedAt": self.refreshed_at.isoformat(),
            "retired": [{"name": entry.name, "at": entry.at.isoformat()} for entry in self.retired],
        }
        if self.hidden_from is not None:
            value["hiddenFrom"] = self.hidden_from.isoformat()
        return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


def manifest_key(fingerprint: str) -> str:
    """Return the key in the state store under which a showing's manifest is."""
    return f"{MANIFESTS}{fingerprint}.json"


def fingerprint_of(key: str) -> str | None:
    """Return whose manifest is under a key of the state store; None for what is no manifest's."""
    found = _MANIFEST_KEY.fullmatch(key)
    return found[1] if found else None


def decode_manifest(content: bytes, showing: Showing) -> Manifest:
    """Return the manifest of a showing; raise ``ManifestError`` for what is none, or another's."""
    try:
        manifest = read_manifest(content)
    except ManifestError as exc:
        raise ManifestError(f"the manifest of the view {showing.name} cannot be read") from exc
    if manifest.fingerprint != showing.fingerprint:
        raise ManifestError(f"the manifest of the view {showing.name} is another's")
    return manifest


def read_manifest(content: bytes) -> Manifest:
    """Return whatever showing's manifest this is; raise ``ManifestError`` for what is none."""
    try:
        return _decoded(json.loads(content))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as exc:
        raise ManifestError("no manifest") from exc


def is_directory_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def _decoded(value: Mapping[str, Any]) -> Manifest:
    if value["format"] != FORMAT:
        raise ManifestError("another format")
    return Manifest(
        fingerprint=_text(value["fingerprint"]),
        view=_text(value["view"]),
        recipient=_text(value["recipient"]),
        name=_directory(value["name"]),
        version=_number(value["version"]),
        sources={
            _text(name): SourceVersion(version=_number(source["version"]), id=_text(source["id"]))
            for name, source in value["sources"].items()
        },
        refreshed_at=_moment(value["refreshedAt"]),
        retired=tuple(
            Retired(name=_directory(entry["name"]), at=_moment(entry["at"])) for entry in value["retired"]
        ),
        hidden_from=_moment(value["hiddenFrom"]) if "hiddenFrom" in value else None,
    )


def _directory(value: object) -> str:
    if not is_directory_name(_text(value)):
        raise ManifestError("no name of a directory")
    return _text(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError("not a version")
    return value


def _moment(value: object) -> datetime:
    moment = datetime.fromisoformat(_text(value)).astimezone(UTC)
    if moment.year == MAXYEAR:
        raise ManifestError("a time that nothing can be added to")
    return moment
