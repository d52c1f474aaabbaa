"""What a PromQL expression asks for: the series that it selects and the labels that it groups by."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<range>\[[^\]]*\])
    | (?P<number>\d[\w.]*)
    | (?P<word>[a-zA-Z_:][\w:]*)
    | (?P<sign>=~|!~|!=|==|>=|<=|[-+*/%^(){},=<>])""",
    re.VERBOSE,
)
_GROUPING = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
_OPERATORS = frozenset({"and", "or", "unless", "bool", "offset"})
_EQUAL = "="


@dataclass(frozen=True, slots=True)
class Matcher:
    label: str
    operator: str
    value: str

    def admits(self, value: str) -> bool:
        if self.operator in ("=~", "!~"):
            return bool(re.fullmatch(self.value, value)) == (self.operator == "=~")
        return (value == self.value) == (self.operator == _EQUAL)


@dataclass(frozen=True, slots=True)
class Selector:
    metric: str
    matchers: tuple[Matcher, ...] = ()


def selectors(expr: str) -> Sequence[Selector]:
    """Return every selector of an expression."""
    return [found for found in _read(expr) if isinstance(found, Selector)]


def grouped_labels(expr: str) -> set[str]:
    """Return the labels that an expression groups, joins or matches sides by."""
    return {found for found in _read(expr) if isinstance(found, str)}


def _read(expr: str) -> Iterator[Selector | str]:
    tokens = list(_tokens(expr))
    at = 0
    while at < len(tokens):
        word = tokens[at]
        following = tokens[at + 1] if at + 1 < len(tokens) else ""
        at += 1
        if word in _GROUPING and following == "(":
            labels, at = _until(tokens, at + 1, ")")
            yield from (label for label in labels if label != ",")
        elif not _is_word(word) or word in _OPERATORS or word in _GROUPING:
            continue
        elif following == "{":
            inside, at = _until(tokens, at + 1, "}")
            yield Selector(word, tuple(_matchers(inside)))
        elif following != "(" and following not in _GROUPING:
            yield Selector(word)


def _tokens(expr: str) -> Iterator[str]:
    at = 0
    while at < len(expr):
        found = _TOKEN.match(expr, at)
        if found is None:
            raise ValueError(f"not understood: {expr[at:]!r}")
        if found.lastgroup not in ("space", "range"):
            yield found.group()
        at = found.end()


def _until(tokens: Sequence[str], start: int, end: str) -> tuple[Sequence[str], int]:
    stop = tokens.index(end, start)
    return tokens[start:stop], stop + 1


def _matchers(tokens: Sequence[str]) -> Iterator[Matcher]:
    for at, token in enumerate(tokens):
        if _is_word(token):
            operator, value = tokens[at + 1 : at + 3]
            yield Matcher(token, operator, value[1:-1].replace("\\\\", "\\").replace('\\"', '"'))


def _is_word(token: str) -> bool:
    return token[0].isalpha() or token[0] in "_:"
