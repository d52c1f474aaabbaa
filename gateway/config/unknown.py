"""Keys that the schema does not know: refused in our own sections, warned of in the reference server's."""

from __future__ import annotations

from functools import cache
from typing import Any

from gateway.config.nearest import LIKELY, NEAR_MISS, nearest
from gateway.config.outline import Entry, outline
from gateway.config.path import Path
from gateway.config.report import Report
from gateway.config.schema import ReferenceSection
from gateway.config.section import Section


def known_part(section: type[Section], data: Any, report: Report, path: Path = ()) -> Any:
    """Return the data without unknown and empty keys, and with misspelt ones as they were meant."""
    if not isinstance(data, dict):
        return data
    if not data.keys() <= outline(section).keys():
        data = _without_unknown(section, data, report, path)
    if None in data.values():
        data = _without_empty(section, data, report, path)
    for entry in _inner(section):
        if entry.key in data:
            data = {**data, entry.key: _known_inner(entry, data[entry.key], report, (*path, entry.key))}
    return data


@cache
def _inner(section: type[Section]) -> tuple[Entry, ...]:
    return tuple(entry for entry in outline(section).values() if entry.section)


def _known_inner(entry: Entry, value: Any, report: Report, path: Path) -> Any:
    if entry.section is None:
        return value
    if entry.is_list and isinstance(value, list):
        return [known_part(entry.section, item, report, (*path, i)) for i, item in enumerate(value)]
    return known_part(entry.section, value, report, path)


def _without_unknown(
    section: type[Section], data: dict[str, Any], report: Report, path: Path
) -> dict[str, Any]:
    known = outline(section)
    kept = {key: value for key, value in data.items() if key in known}
    for key, value in data.items():
        if key not in known and (meant := _judge(section, key, (*path, key), report)):
            kept.setdefault(meant, value)
    return kept


def _judge(section: type[Section], key: str, path: Path, report: Report) -> str:
    """Report an unknown key and return the one that was probably meant."""
    known = outline(section)
    if not issubclass(section, ReferenceSection):
        meant = nearest(key, known, LIKELY)
        report.fault(path, f"is not a known key; known are {', '.join(known)}", suggestion=meant)
        return meant if nearest(key, known, NEAR_MISS) else ""
    if key in section.not_applicable:
        report.warn(path, f"has no effect here: {section.not_applicable[key]}")
    elif meant := nearest(key, known, NEAR_MISS):
        report.fault(path, "is not a known key", suggestion=meant)
        return meant
    else:
        report.warn(path, "is not a known key and is ignored")
    return ""


def _without_empty(
    section: type[Section], data: dict[str, Any], report: Report, path: Path
) -> dict[str, Any]:
    for key, value in data.items():
        if value is None:
            _judge_empty(section, outline(section)[key], (*path, key), report)
    return {key: value for key, value in data.items() if value is not None}


def _judge_empty(section: type[Section], entry: Entry, path: Path, report: Report) -> None:
    if entry.is_list:
        # Left out, such a list means something else than empty; a key without a value could mean either.
        if entry.is_nullable:
            report.fault(path, "must be a list; write [] for none, or remove the key", None)
    elif entry.section or entry.members:
        # A section whose keys are all commented out.
        return
    elif issubclass(section, ReferenceSection):
        report.warn(path, "has no value, so it is as if the key were not there")
    else:
        # A token whose end was lost on the way must not live for ever.
        report.fault(path, "has no value; give one, or remove the key")
