"""Where two JSON values differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import Enum
from typing import Any, Final


class Missing(Enum):
    """What stands for a value that one side does not give."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING

# In a nested object an empty string is a value of its own.
_NOTHING: Final[tuple[object, ...]] = (None, [], {})


def differences(old: object, new: object, path: str) -> Iterator[tuple[str, object, object]]:
    """Return where two JSON values differ; numbers are compared as numbers, named objects by name."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from differences(given(old, key, _NOTHING), given(new, key, _NOTHING), f"{path}.{key}")
    elif _are_named(old) and _are_named(new):
        yield from _named_differences(old, new, path)
    elif not _same(old, new):
        yield path, old, new


def given(content: Mapping[str, Any], name: str, empty: tuple[object, ...]) -> object:
    """Return a field's value, or ``MISSING`` for one that is as good as absent."""
    value = content.get(name)
    return MISSING if value in empty else value


def parse_json(text: str) -> object:
    """Return the values that a text stands for, or the text itself when it is not JSON."""
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=str)
    except (ValueError, RecursionError):
        return text


def _are_named(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(part, Mapping) and isinstance(part.get("name"), str) for part in value)
    )


def _named_differences(old: Any, new: Any, path: str) -> Iterator[tuple[str, object, object]]:
    olds, news = ({part["name"]: part for part in side} for side in (old, new))
    for name in dict.fromkeys([*olds, *news]):
        yield from differences(olds.get(name, MISSING), news.get(name, MISSING), f"{path}.{name}")
    order = [name for name in olds if name in news]
    if order != [name for name in news if name in olds]:
        yield f"{path} order", list(olds), list(news)


def _same(old: object, new: object) -> bool:
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(
            not any(differences(one, other, "")) for one, other in zip(old, new, strict=True)
        )
    return old == new
