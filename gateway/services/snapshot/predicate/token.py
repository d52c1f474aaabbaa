"""The words of an SQL predicate."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from gateway.services.snapshot.predicate.expression import ParseFault

MAX_TEXT: Final = 256 * 1024
# A list of values may be long; each is looked up among those of a file, so they cost little.
MAX_TOKENS: Final = 50_000


class Kind(Enum):
    WORD = auto()
    # A name in backquotes, which is never a keyword.
    NAME = auto()
    STRING = auto()
    # A string with an escape that engines read differently.
    DOUBTFUL_STRING = auto()
    NUMBER = auto()
    SYMBOL = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    # As it was written, without quotes and escapes.
    text: str


# Digits and spaces are never given back: where a long run leads nowhere, each shorter one would be tried too.
_TOKEN: Final = re.compile(
    r"""\s*+(?:
        (?P<number>(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?(?:[lLsSyYdDfF]|[bB][dD])?(?!\w))
      | (?P<word>[0-9]*+[^\W\d]\w*)
      | `(?P<name>(?:[^`]|``)+)`
      | '(?P<single>(?:[^'\\]|\\.|'')*)'
      | "(?P<double>(?:[^"\\]|\\.|"")*)"
      | (?P<symbol><=>|<=|>=|<>|!=|==|\|\||[=<>(),.+\-*/%!\[\]&|^~:])
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


def read_tokens(text: str) -> list[Token]:
    """Return the words of a text, with an end; raise ``ParseFault`` for what is none."""
    if len(text) > MAX_TEXT:
        raise ParseFault("too long")
    tokens = []
    for token in _read(text):
        tokens.append(token)
        if len(tokens) > MAX_TOKENS:
            raise ParseFault("too many words")
    return tokens


def _read(text: str) -> Iterator[Token]:
    end = len(text.rstrip())
    position = 0
    while position < end:
        found = _TOKEN.match(text, position)
        if found is None:
            raise ParseFault(f"unexpected {text[position : position + 10]!r}")
        position = found.end()
        yield _token(found)
    yield Token(Kind.END, "")


def _token(found: re.Match[str]) -> Token:
    group, text = found.lastgroup, found[found.lastgroup or 0]
    if group == "name":
        return Token(Kind.NAME, text.replace("``", "`"))
    if group in {"single", "double"}:
        return _string(text, "'" if group == "single" else '"')
    return Token(_KINDS[str(group)], text)


def _string(text: str, quote: str) -> Token:
    # Spark escapes quotes and backslashes alone; what else follows a backslash is read in several ways.
    kind = Kind.STRING
    if any(escape[1] not in {"\\", quote} for escape in _ESCAPE.finditer(text)):
        kind = Kind.DOUBTFUL_STRING
    # Doubled quotes first: one that stands behind a backslash is not doubled by the next.
    return Token(
        kind, re.sub(rf"\\(.)|{quote}{quote}", lambda found: found[1] or quote, text, flags=re.DOTALL)
    )


_KINDS: Final = {"number": Kind.NUMBER, "word": Kind.WORD, "symbol": Kind.SYMBOL}
