"""Stand-ins for what is faulty, so that the rest of a file can still be checked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from gateway.config.outline import outline
from gateway.config.path import Path
from gateway.config.schema import Config
from gateway.config.section import Section

_STAND_INS: Final[Mapping[str, Callable[[int], object]]] = {
    "hash": lambda number: f"sha256:{hashlib.sha256(str(number).encode()).hexdigest()}",
    "location": lambda number: f"file:///stand-in/{number}",
    "prefix": lambda number: f"file:///stand-in/{number}",
    "requestsPerSecond": lambda _: 1,
    "burst": lambda _: 1,
}


def repair(data: dict[str, Any], paths: Sequence[Path]) -> None:
    """Mend the data at these paths: what can be left out goes, the rest is made up."""
    for number, path in enumerate(paths):
        if path:
            _mend(data, Config, path, number)


def _mend(node: dict[str, Any], section: type[Section], path: Path, number: int) -> None:
    key, rest = str(path[0]), path[1:]
    entry = outline(section)[key]
    inner = node.get(key)
    if entry.section and rest and isinstance(inner, dict):
        _mend(inner, entry.section, rest, number)
    elif entry.section and rest and isinstance(inner, list):
        _mend_item(inner, entry.section, rest, number)
    elif entry.is_required:
        node[key] = _stand_in(key, number)
    else:
        node.pop(key, None)


def _mend_item(items: list[Any], section: type[Section], path: Path, number: int) -> None:
    index, rest = int(path[0]), path[1:]
    if rest and isinstance(items[index], dict):
        _mend(items[index], section, rest, number)
    else:
        required = [entry.key for entry in outline(section).values() if entry.is_required]
        items[index] = {key: _stand_in(key, number) for key in required}


def _stand_in(key: str, number: int) -> object:
    make = _STAND_INS.get(key)
    return make(number) if make else f"stand-in-{number}"
