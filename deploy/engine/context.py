"""Which files of a folder a build may see: the rules of ``.dockerignore``."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Rule:
    """A line: what it matches, and whether that is taken back in."""

    pattern: re.Pattern[str]
    keeps: bool
    # The folder or file of the top level that it speaks of.
    top: str


def read_rules(text: str) -> list[Rule]:
    lines = (line.strip() for line in text.splitlines())
    return [_rule(line) for line in lines if line and not line.startswith("#")]


def is_sent(path: str, rules: Sequence[Rule]) -> bool:
    """Tell whether a file is sent to the build: the last rule that matches it or a folder above holds."""
    places = [path, *(str(parent) for parent in Path(path).parents)]
    sent = True
    for rule in rules:
        if any(rule.pattern.fullmatch(place) for place in places):
            sent = rule.keeps
    return sent


def sent_files(folder: Path, rules: Sequence[Rule]) -> Iterator[Path]:
    """Yield the files that a build sees, relative to the folder."""
    for top in sorted(folder.iterdir()):
        taken_back = any(rule.keeps and fnmatch(top.name, rule.top) for rule in rules)
        # An environment, say, of which nothing is looked for.
        if not taken_back and not is_sent(top.name, rules):
            continue
        files = [top] if not top.is_dir() or top.is_symlink() else sorted(top.rglob("*"))
        for file in files:
            relative = file.relative_to(folder)
            if file.is_file() and is_sent(relative.as_posix(), rules):
                yield relative


def stage_context(folder: Path, place: Path) -> None:
    """Copy what a build may see into a place of its own."""
    rules = read_rules((folder / ".dockerignore").read_text())
    for file in sent_files(folder, rules):
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(folder / file, place / file)


def _rule(line: str) -> Rule:
    pattern = line.removeprefix("!").strip("/")
    return Rule(_translate(pattern), line.startswith("!"), pattern.split("/")[0])


def _translate(pattern: str) -> re.Pattern[str]:
    """Return a rule's pattern as a regular expression: ``*`` stays in one folder, ``**`` does not."""
    expression = ""
    for part in re.split(r"(\*\*/|\*\*|\*|\?)", pattern):
        expression += {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part))
    return re.compile(expression)
