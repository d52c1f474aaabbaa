"""Reads a Dockerfile into stages and instructions; what it does not know it refuses."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

_KNOWN: Final = frozenset(
    (
        *("FROM", "ARG", "COPY", "RUN", "WORKDIR"),
        *("ENV", "LABEL", "USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"),
    )
)
_FLAG: Final = re.compile(r"--([a-z-]+)(?:=(\S+))?\s+")
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}|\$(\w+)")


class DockerfileError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its flags, and what follows them."""

    line: int
    keyword: str
    text: str
    flags: tuple[tuple[str, str], ...] = ()

    def flag(self, name: str) -> str | None:
        return dict(self.flags).get(name)

    def words(self) -> list[str]:
        """Return the arguments, of the exec form too."""
        return json.loads(self.text) if self.is_exec else shlex.split(self.text)

    @property
    def is_exec(self) -> bool:
        return self.text.startswith("[")

    def pairs(self) -> dict[str, str]:
        """Return the names and values of ENV, LABEL and ARG."""
        return dict(word.partition("=")[::2] for word in self.words())


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    base: str
    instructions: list[Instruction] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Dockerfile:
    """The stages in order, and the arguments that come before the first."""

    arguments: Mapping[str, str]
    stages: tuple[Stage, ...]

    def stage(self, name: str) -> Stage | None:
        return next((stage for stage in self.stages if stage.name == name), None)


def parse(text: str, given: Mapping[str, str] | None = None) -> Dockerfile:
    """Read a Dockerfile; ``given`` are arguments of the build, in place of their defaults."""
    arguments: dict[str, str] = {}
    stages: list[Stage] = []
    for instruction in _instructions(text):
        if instruction.keyword == "FROM":
            stages.append(_stage(instruction, arguments, len(stages)))
        elif stages:
            stages[-1].instructions.append(instruction)
        elif instruction.keyword == "ARG":
            arguments |= instruction.pairs()
            arguments |= {name: value for name, value in (given or {}).items() if name in arguments}
        else:
            raise DockerfileError(f"line {instruction.line}: {instruction.keyword} before the first FROM")
    return Dockerfile(arguments, tuple(stages))


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Put variables into a text; an unknown one is empty, as it is for an engine."""
    return _VARIABLE.sub(lambda match: variables.get(match[1] or match[2], ""), text)


def _stage(instruction: Instruction, arguments: Mapping[str, str], number: int) -> Stage:
    words = instruction.text.split()
    if len(words) == 3 and words[1].upper() == "AS":  # noqa: PLR2004 -- image AS name
        return Stage(name=words[2], base=expand(words[0], arguments))
    if len(words) == 1:
        return Stage(name=str(number), base=expand(words[0], arguments))
    raise DockerfileError(f"line {instruction.line}: FROM {instruction.text} is not understood")


def _instructions(text: str) -> Iterator[Instruction]:
    for line, whole in _lines(text):
        keyword, _, rest = whole.partition(" ")
        if keyword.upper() not in _KNOWN:
            raise DockerfileError(f"line {line}: {keyword} is not understood")
        flags, rest = _flags(rest.strip())
        yield Instruction(line, keyword.upper(), rest, flags)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each instruction in one line, with the number of its first; comments are left out."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate(text.splitlines(), start=1):
        # A comment may stand between the lines of an instruction, too.
        if line.lstrip().startswith("#") or not line.strip():
            continue
        first = first if parts else number
        parts.append(line.strip().removesuffix("\\").strip())
        if not line.rstrip().endswith("\\"):
            yield first, " ".join(parts)
            parts = []
    if parts:
        raise DockerfileError(f"line {first}: the instruction does not end")


def _flags(text: str) -> tuple[tuple[tuple[str, str], ...], str]:
    flags: list[tuple[str, str]] = []
    while match := _FLAG.match(text):
        flags.append((match[1], match[2] or ""))
        text = text[match.end() :]
    return tuple(flags), text
