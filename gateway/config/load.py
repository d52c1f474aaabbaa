"""Reads a configuration: the file, then ``SLUICE_*``, then ``SLUICE_*_FILE``, into one frozen tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from gateway.config.broken import Broken
from gateway.config.checks import check
from gateway.config.document import find_lines, parse_document
from gateway.config.environment import overlay
from gateway.config.faults import ConfigError, Fault
from gateway.config.path import format_path
from gateway.config.repair import repair
from gateway.config.report import Report
from gateway.config.schema import Config
from gateway.config.unknown import known_part
from gateway.config.wording import report_errors

_LAST_STEP: Final = re.compile(r"(?:(?:^|\.)[^.\[\]]+|\[[^\[\]]*\])$")
# A repaired entry may show a fault that the broken one hid; no entry hides more than a few.
_ATTEMPTS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    config: Config
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A configuration as far as it can be understood, and all that is wrong with it."""

    # None when nothing can be understood.
    config: Config | None
    faults: tuple[Fault, ...] = ()
    warnings: tuple[str, ...] = ()
    # What of the configuration is made up.
    broken: Broken = field(default_factory=Broken)


def load(file: Path, env: Mapping[str, str]) -> Loaded:
    """Return the configuration; raise ``ConfigError`` with every fault that it has."""
    draft = read(file, env)
    if draft.faults or draft.config is None:
        raise ConfigError(draft.faults)
    return Loaded(config=draft.config, warnings=draft.warnings)


def read(file: Path, env: Mapping[str, str]) -> Draft:
    """Return what can be understood of a configuration; raise only when nothing can be read."""
    text = _read_text(file)
    document = parse_document(text)
    report = Report()
    data = known_part(Config, {} if document is None else document, report)
    config = _validated(overlay(data, env, report), report)
    if config is not None:
        report.mark_broken()
        config = _settled(config, env)
        check(config, report)
    faults = report.faults(_lines(text)) if report.has_faults else ()
    return Draft(config=config, faults=faults, warnings=report.warnings(), broken=report.broken)


def locate(faults: Iterable[Fault], file: Path) -> tuple[Fault, ...]:
    """Return faults that were found after loading, with their lines in the file."""
    lines = {format_path(path): line for path, line in _lines(_read_text(file)).items() if path}
    return tuple(replace(fault, line=_line(fault.path, lines)) for fault in faults)


def _settled(config: Config, env: Mapping[str, str]) -> Config:
    """Return the configuration with a state directory: the user's, or that of a service without a home."""
    if config.state_dir:
        return config
    home = f"{env['HOME']}/.local/state" if env.get("HOME") else "/var/lib"
    return config.model_copy(update={"state_dir": f"{env.get('XDG_STATE_HOME') or home}/sluice"})


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as exc:
        reason = exc.strerror or "cannot be read"
        raise ConfigError(
            [Fault(path="", message=f"the configuration {file} cannot be read: {reason}")]
        ) from None
    except ValueError:
        raise ConfigError([Fault(path="", message=f"the configuration {file} is not UTF-8 text")]) from None


def _line(path: str, lines: Mapping[str, int]) -> int | None:
    """Return the line of a path, or of the nearest one above it that stands in the file."""
    while path and path not in lines:
        above = _LAST_STEP.sub("", path)
        path = above if above != path else ""
    return lines.get(path)


def _lines(text: str) -> Mapping[tuple[str | int, ...], int]:
    try:
        return find_lines(text)
    except ConfigError:
        # JSON that is not quite YAML.
        return {}


def _validated(data: Any, report: Report) -> Config | None:
    for _ in range(_ATTEMPTS):
        try:
            return Config.model_validate(data)
        except ValidationError as exc:
            paths = report_errors(exc.errors(include_url=False), data, report)
            if not isinstance(data, dict):
                return None
            repair(data, paths)
    return None
