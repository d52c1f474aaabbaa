"""The chart's values with the comments that stand above them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parent / "sluice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One value: its comment, and those below it that have comments of their own."""

    key: str
    comment: str
    default: Any
    children: tuple[Value, ...]


def read_values() -> tuple[Value, ...]:
    """Return the values of ``values.yaml``; raise ``ValueError`` for one without a comment."""
    text = (CHART / "values.yaml").read_text("utf-8")
    return tuple(_below(yaml.compose(text, yaml.SafeLoader), text.splitlines(), ""))


def walk(values: tuple[Value, ...], above: str = "") -> Iterator[tuple[str, Value]]:
    """Give each value with its path, those below it after it."""
    for value in values:
        path = f"{above}{value.key}"
        yield path, value
        yield from walk(value.children, f"{path}.")


def _below(mapping: Any, lines: list[str], above: str) -> Iterator[Value]:
    for key, node in mapping.value:
        path = f"{above}{key.value}"
        comment = _comment(lines, key.start_mark)
        if not comment:
            raise ValueError(f"values.yaml: {path} has no comment")
        yield Value(
            key=key.value,
            comment=comment,
            default=_plain(node),
            children=tuple(_below(node, lines, f"{path}.")) if _is_section(node, lines) else (),
        )


def _is_section(node: Any, lines: list[str]) -> bool:
    """Tell whether the keys of a mapping are values of their own: then the first of them has a comment."""
    if not isinstance(node, yaml.MappingNode) or node.flow_style or not node.value:
        return False
    return bool(_comment(lines, node.value[0][0].start_mark))


def _comment(lines: list[str], mark: Any) -> str:
    """Return the text of the comment lines right above a place, as deep as it."""
    found: list[str] = []
    start = " " * mark.column + "# "
    for line in reversed(lines[: mark.line]):
        if not line.startswith(start):
            break
        found.insert(0, line.removeprefix(start))
    return " ".join(found)


def _plain(node: Any) -> Any:
    return yaml.safe_load(yaml.serialize(node))
