"""Changes a few values of a configuration file in its text, so that comments and order stay as they are."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import yaml

from gateway.config.document import parse_document
from gateway.config.faults import ConfigError
from gateway.config.path import Path as Place
from gateway.config.path import format_path

Value = str | Literal[True]
Values = Mapping[str, Value]

_LOADER: Final[type] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BOM: Final = "\ufeff"
_BLOCK_STYLES: Final = frozenset("|>")


class NotEditable(Exception):
    """The text is written so that a change of these values alone cannot be told from a change of more."""


class Changed(Exception):
    """Somebody else has written the file in the meantime."""


@dataclass(frozen=True, slots=True)
class ConfigText:
    """A file's text with its line ends, and what it was read from."""

    file: Path
    text: str
    content: bytes = field(repr=False)

    @staticmethod
    def read(file: Path) -> ConfigText:
        """Read a file that the configuration was loaded from before."""
        content = file.read_bytes()
        return ConfigText(file, content.decode("utf-8"), content)


def with_values(text: str, place: Place, values: Values) -> str:
    """Return the text with these keys of the mapping at the place set; raise ``NotEditable`` if unsafe."""
    try:
        edited = _edited(text, place, values)
        # Anchors, merges and odd styles are told by what comes of them: nothing else may have changed.
        if edited is not None and parse_document(edited) in _expected(parse_document(text), place, values):
            return edited
    except (ConfigError, yaml.YAMLError):
        pass
    raise NotEditable(f"{format_path(place)} is written in a way that cannot be changed safely by a program")


def snippet(section: str, name: str, values: Values) -> str:
    """Return the change of an entry in words that a person can follow, wherever it stands."""
    lines = "\n".join(f"    {key}: {_plain(value)}" for key, value in values.items())
    return f"  {section}, the entry named {name}:\n{lines}"


def changed(file: Path) -> Changed:
    return Changed(f"{file} was changed by somebody else just now; try again")


def replace_file(old: ConfigText, text: str) -> None:
    """Put the text in the file's place as a whole; raise ``Changed`` or ``OSError``."""
    # A link stays one: what it leads to is replaced.
    file = old.file.resolve()
    status = file.stat()
    draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(text.encode("utf-8"))
            stream.flush()
            _take_after(stream.fileno(), status)
            os.fsync(stream.fileno())
        if file.read_bytes() != old.content:
            raise changed(old.file)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def _take_after(descriptor: int, status: os.stat_result) -> None:
    if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        # Before the mode: a change of the owner clears some of its bits.
        os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, status.st_mode & 0o7777)


def _expected(document: Any, place: Place, values: Values) -> tuple[Any, Any]:
    """Return the document with the values set, as JSON and as YAML spell them."""
    as_text = {key: _plain(value) for key, value in values.items()}
    return _updated(document, place, values), _updated(document, place, as_text)


def _updated(document: Any, place: Place, values: Values) -> Any:
    """Copy along the way only: what else shares a part of the document must keep the old one."""
    if not place:
        return {**document, **values}
    step: Any = place[0]
    copied: Any = list(document) if isinstance(document, list) else dict(document)
    copied[step] = _updated(copied[step], place[1:], values)
    return copied


def _plain(value: Value) -> str:
    return value if isinstance(value, str) else str(value).lower()


@dataclass(slots=True)
class _Entry:
    """Where the parts of one mapping stand in the text, as offsets."""

    is_flow: bool
    indent: int = 0
    # The end of the first simple value, behind which new keys go.
    anchor: int | None = None
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)


# A span of the text, and what takes its place.
_Edit = tuple[int, int, str]


def _edited(text: str, place: Place, values: Values) -> str | None:
    # The parser does not count a byte order mark.
    head, body = (_BOM, text[len(_BOM) :]) if text.startswith(_BOM) else ("", text)
    entry = _find(body, place)
    if entry is None or entry.anchor is None:
        return None
    edits = [_replacement(entry, key, value) for key, value in values.items() if key in entry.spans]
    if added := {key: value for key, value in values.items() if key not in entry.spans}:
        edits.append(_insertion(body, entry, entry.anchor, added))
    # From the end, so that the offsets before it stay true.
    for start, end, new in sorted(edits, reverse=True):
        body = f"{body[:start]}{new}{body[end:]}"
    return head + body


def _replacement(entry: _Entry, key: str, value: Value) -> _Edit:
    start, end = entry.spans[key]
    new = json.dumps(value) if entry.is_flow else _plain(value)
    # Nothing stands there yet but the colon.
    return start, end, f" {new}" if start == end else new


def _insertion(body: str, entry: _Entry, anchor: int, added: Values) -> _Edit:
    if entry.is_flow:
        text = "".join(f", {json.dumps(key)}: {json.dumps(value)}" for key, value in added.items())
        return anchor, anchor, text
    newline = "\r\n" if "\r\n" in body else "\n"
    lines = newline.join(f"{' ' * entry.indent}{key}: {_plain(value)}" for key, value in added.items())
    end = body.find("\n", anchor) + 1
    return (end, end, lines + newline) if end else (len(body), len(body), newline + lines)


def _find(text: str, place: Place) -> _Entry | None:
    """Return the mapping at the place, unless it is an alias of another one."""
    events = yaml.parse(text, Loader=_LOADER)
    for event in events:
        if isinstance(event, yaml.MappingStartEvent):
            return _descend(events, event, place)
    return None


def _descend(events: Iterator[Any], event: Any, place: Place) -> _Entry | None:
    for step in place:
        wanted = yaml.SequenceStartEvent if isinstance(step, int) else yaml.MappingStartEvent
        found = _child(events, step) if isinstance(event, wanted) else None
        if found is None:
            return None
        event = found
    return _read_entry(events, event) if isinstance(event, yaml.MappingStartEvent) else None


def _child(events: Iterator[Any], step: str | int) -> Any:
    """Return the first event of a child of the collection that has just begun."""
    number = 0
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            return None
        if isinstance(step, str):
            _skip(events, event)
            value = next(events)
            if getattr(event, "value", None) == step:
                return value
            _skip(events, value)
        else:
            if number == step:
                return event
            _skip(events, event)
            number += 1
    return None


def _read_entry(events: Iterator[Any], start: Any) -> _Entry:
    entry = _Entry(is_flow=bool(start.flow_style))
    for key in events:
        if isinstance(key, yaml.CollectionEndEvent):
            break
        _skip(events, key)
        value = next(events)
        end = _skip(events, value)
        if entry.anchor is None and isinstance(value, yaml.ScalarEvent) and value.style not in _BLOCK_STYLES:
            entry.indent, entry.anchor = key.start_mark.column, end
        if isinstance(value, yaml.ScalarEvent | yaml.AliasEvent):
            entry.spans[getattr(key, "value", "")] = (_start(value), end)
    return entry


def _start(event: Any) -> int:
    return int(event.start_mark.index)


def _skip(events: Iterator[Any], event: Any) -> int:
    """Pass over the rest of a node, and return the offset of its end."""
    depth = 0
    while True:
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth == 0:
            return int(event.end_mark.index)
        event = next(events)
