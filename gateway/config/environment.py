"""Settings from ``SLUICE_*`` variables, and from the files that ``SLUICE_*_FILE`` name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path as FilePath
from typing import Any, Final

from gateway.config.nearest import nearest
from gateway.config.outline import outline
from gateway.config.path import Path
from gateway.config.report import Report
from gateway.config.schema import Config
from gateway.config.section import Section
from gateway.config.value import Plain

PREFIX: Final = "SLUICE_"
_FILE: Final = "_FILE"
# What Kubernetes puts in the environment for every Service whose name begins with sluice.
_SERVICE_LINK: Final = re.compile(r"\w+_SERVICE_(HOST|PORT(_\w+)?)|\w+_PORT_\d+_(TCP|UDP|SCTP)(_\w+)?")
_SERVICE_LINK_PORT: Final = re.compile(r"(tcp|udp|sctp)://")


@dataclass(frozen=True, slots=True)
class Variable:
    path: Path
    is_list: bool


@cache
def variables() -> Mapping[str, Variable]:
    """Return every variable that the schema has a place for; what stands in lists has none."""
    return {f"{PREFIX}{name}": variable for name, variable in _variables(Config, (), "")}


def overlay(data: Any, env: Mapping[str, str], report: Report) -> Any:
    """Return the data with the environment's settings over it."""
    if not isinstance(data, dict):
        return data
    ours = {name: env[name] for name in sorted(env) if name.startswith(PREFIX)}
    ours = _without_service_links(ours, report)
    for name, text in ours.items():
        if name in variables():
            data = _set(data, name, name, text, report)
        elif name.removesuffix(_FILE) not in variables():
            _report_unknown(name, report)
    for name, text in ours.items():
        if name not in variables() and name.removesuffix(_FILE) in variables():
            content = _read(name, text, report)
            if content is not None:
                data = _set(data, name.removesuffix(_FILE), name, content, report)
    return data


def _variables(section: type[Section], path: Path, prefix: str) -> Iterator[tuple[str, Variable]]:
    for entry in outline(section).values():
        name, place = f"{prefix}{entry.variable}", (*path, entry.key)
        if entry.section is not None and not entry.is_list:
            yield from _variables(entry.section, place, f"{name}_")
        elif entry.members:
            yield from ((f"{name}_{m.upper()}", Variable((*place, m), is_list=True)) for m in entry.members)
        elif entry.section is None:
            yield name, Variable(place, entry.is_list)


def _without_service_links(ours: dict[str, str], report: Report) -> dict[str, str]:
    kept = {
        name: text
        for name, text in ours.items()
        if not (
            (_SERVICE_LINK.fullmatch(name) and name not in variables())
            or (name.endswith("_PORT") and _SERVICE_LINK_PORT.match(text))
        )
    }
    if len(kept) < len(ours):
        report.warn(
            (),
            "variables that Kubernetes sets for Services named sluice are ignored; "
            "set enableServiceLinks: false in the pod",
        )
    return kept


def _report_unknown(name: str, report: Report) -> None:
    for key, reason in Config.not_applicable.items():
        if re.sub(r"(?=[A-Z])", "_", key).upper() == name.removeprefix(PREFIX):
            report.warn((name,), f"has no effect here: {reason}")
            return
    for entry in outline(Config).values():
        if entry.section and entry.is_list and name.startswith(f"{PREFIX}{entry.variable}"):
            report.fault((name,), f"is not a known variable; {entry.key} can be given in the file only")
            return
    meant = nearest(name.removeprefix(PREFIX), (known.removeprefix(PREFIX) for known in variables()))
    report.fault((name,), "is not a known variable", suggestion=f"{PREFIX}{meant}" if meant else "")


def _read(name: str, file: str, report: Report) -> str | None:
    try:
        return FilePath(file).read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as exc:
        report.fault((name,), f"names a file that cannot be read ({exc.strerror})", file)
    except ValueError:
        report.fault((name,), "names a file that is not UTF-8 text", file)
    return None


def _set(data: dict[str, Any], variable: str, origin: str, text: str, report: Report) -> dict[str, Any]:
    place = variables()[variable]
    report.note_origin(place.path, origin)
    if not _is_text(text):
        report.fault(place.path, "must be UTF-8 text")
        return data
    return _put(data, place.path, _split(text) if place.is_list else Plain(text))


def _is_text(text: str) -> bool:
    # Python passes bytes of the environment that are not UTF-8 as lone surrogates.
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _split(text: str) -> list[Plain]:
    return [Plain(part.strip()) for part in text.split(",") if part.strip()]


def _put(data: dict[str, Any], path: Path, value: object) -> dict[str, Any]:
    head, rest = str(path[0]), path[1:]
    if not rest:
        return {**data, head: value}
    inner = data.get(head)
    if inner is not None and not isinstance(inner, dict):
        # A fault of the file, which is reported as such.
        return data
    return {**data, head: _put(inner or {}, rest, value)}
