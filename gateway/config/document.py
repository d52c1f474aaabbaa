"""A YAML or JSON file as plain mappings, lists and texts: which text is a number, the schema decides."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from gateway.config.faults import ConfigError, Fault
from gateway.config.path import Path, format_path, quoted
from gateway.config.value import Plain

# Events instead of nodes, and no guessing of types, make a file of 100,000 tables load in a second or two.
_LOADER: Final[type] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_MAYBE_TYPED: Final = frozenset("0123456789+-.tTfF")
_TEXT_TAGS: Final = frozenset({None, "!", "tag:yaml.org,2002:str"})
_CONTAINER_TAGS: Final = frozenset({None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})
_MERGE: Final = "<<"
_DEEPEST: Final = 64


def parse_document(text: str) -> object:
    """Return the document; raise ``ConfigError`` when it is not one, or when a mapping repeats a key."""
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        try:
            return _parse_json(text)
        except (ValueError, RecursionError):
            # It may still be YAML in flow style, or JSON with a fault that the YAML parser can locate.
            pass
    builder = _Builder()
    for event in _events(text):
        builder.take(event)
    if builder.faults:
        raise ConfigError(builder.faults)
    return builder.document


def find_lines(text: str) -> dict[Path, int]:
    """Return the line of every entry of a document that ``parse_document`` accepts."""
    lines: dict[Path, int] = {}
    stack: list[_Place] = []
    for event in _events(text):
        if isinstance(event, yaml.CollectionEndEvent):
            stack.pop()
        elif isinstance(event, yaml.NodeEvent):
            place = _step(stack, event)
            lines.setdefault(place.path, event.start_mark.line + 1 if event.start_mark else 0)
            if isinstance(event, yaml.CollectionStartEvent):
                stack.append(place)
    return lines


def _parse_json(text: str) -> object:
    # Numbers stay text, as in YAML.
    document = json.loads(
        text.lstrip("\ufeff"),
        object_pairs_hook=_unrepeated,
        parse_int=Plain,
        parse_float=Plain,
        parse_constant=Plain,
    )
    if "\\ud" in text.lower():
        # Half of a pair is text to JSON alone; the YAML parser, which is asked next, refuses it.
        json.dumps(document, ensure_ascii=False).encode()
    return document


def _unrepeated(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("a key is repeated")
    return mapping


def _events(text: str) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        # The parser's snippet is left out: it may hold a secret.
        raise _refusal(f"not valid YAML: {exc.problem or exc.context}", mark) from None
    except yaml.YAMLError as exc:
        reason = getattr(exc, "reason", "") or "a character that is not allowed"
        raise _refusal(f"not valid YAML: {reason}", None) from None
    except UnicodeEncodeError:
        raise _refusal("not valid YAML: a lone surrogate", None) from None


def _refusal(message: str, mark: Any) -> ConfigError:
    return ConfigError([Fault(path="", message=message, line=mark.line + 1 if mark else None)])


class _Builder:
    """Puts the events of one document together."""

    def __init__(self) -> None:
        self.document: object = None
        self.faults: list[Fault] = []
        # The mapping or list that is being read, the key that waits for its value, and what lies around them.
        self._top: Any = None
        self._key: str | None = None
        self._around: list[tuple[Any, str | None, str | None]] = []
        self._anchors: dict[str, Any] = {}
        self._documents = 0
        self._handlers: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.AliasEvent: self._alias,
            yaml.MappingStartEvent: self._start,
            yaml.SequenceStartEvent: self._start,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.DocumentStartEvent: self._start_document,
        }

    def take(self, event: yaml.Event) -> None:
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)

    def _start_document(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            raise _refusal("holds more than one YAML document; keep one", event.start_mark)

    def _scalar(self, event: Any) -> None:
        value = event.value
        if event.tag is None and event.implicit[0]:
            value = _plain(value)
        elif event.tag not in _TEXT_TAGS:
            raise _refusal(_NO_TAGS, event.start_mark)
        if event.anchor:
            self._anchors[event.anchor] = value
        self._put(value, event)

    def _alias(self, event: Any) -> None:
        # An anchor is known once its value is whole, so that nothing can contain itself.
        if event.anchor not in self._anchors:
            raise _refusal(
                "an alias (*) needs its anchor (&) before it; quote a text that begins with *",
                event.start_mark,
            )
        self._put(self._anchors[event.anchor], event)

    def _start(self, event: Any) -> None:
        if event.tag not in _CONTAINER_TAGS:
            raise _refusal(_NO_TAGS, event.start_mark)
        if len(self._around) >= _DEEPEST:
            raise _refusal(f"nested more than {_DEEPEST} levels deep", event.start_mark)
        self._around.append((self._top, self._key, event.anchor))
        self._top = {} if type(event) is yaml.MappingStartEvent else []
        self._key = None

    def _end(self, event: Any) -> None:
        value = self._top
        self._top, self._key, anchor = self._around.pop()
        if _MERGE in value and isinstance(value, dict):
            value = _merged(value, event)
        if anchor:
            self._anchors[anchor] = value
        self._put(value, event)

    def _put(self, value: Any, event: Any) -> None:
        top, key = self._top, self._key
        if type(top) is list:
            top.append(value)
        elif top is None:
            self.document = value
        elif key is None:
            self._key = self._checked_key(value, event)
        else:
            top.setdefault(key, value)
            self._key = None

    def _checked_key(self, key: Any, event: Any) -> str:
        if not isinstance(key, str):
            raise _refusal("a key must be a text; quote it", event.start_mark)
        if key in self._top:
            line = event.start_mark.line + 1
            message = f"the key {quoted(key)} is given twice; keep one"
            self.faults.append(Fault(path=format_path((*self._path(), key)), message=message, line=line))
        return key

    def _path(self) -> Path:
        around = self._around[1:]
        return tuple(len(top) if isinstance(top, list) else key or "" for top, key, _ in around)


_NO_TAGS: Final = "a tag (!) has no meaning here; quote a text that begins with !"


def _plain(text: str) -> str | None:
    if text in _NULLS:
        return None
    return Plain(text) if text[0] in _MAYBE_TYPED else text


def _merged(mapping: dict[str, Any], event: Any) -> dict[str, Any]:
    value = mapping.pop(_MERGE)
    merged: dict[str, Any] = {}
    for other in value if isinstance(value, list) else [value]:
        if not isinstance(other, dict):
            raise _refusal("a merge (<<) takes a mapping, or a list of mappings", event.start_mark)
        merged = {**other, **merged}
    return {**merged, **mapping}


@dataclass(slots=True)
class _Place:
    """Where an event stands, and what of its content was passed."""

    path: Path
    is_list: bool
    count: int = 0
    key: str | None = None


def _step(stack: list[_Place], event: Any) -> _Place:
    is_list = isinstance(event, yaml.SequenceStartEvent)
    if not stack:
        return _Place((), is_list)
    top = stack[-1]
    if top.is_list:
        top.count += 1
        return _Place((*top.path, top.count - 1), is_list)
    if top.key is None:
        top.key = getattr(event, "value", None) or ""
        return _Place((*top.path, top.key), is_list)
    path, top.key = (*top.path, top.key), None
    return _Place(path, is_list)
