"""Text to syntax tree and back: Spark's SQL, with every function left as it was called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError, UnsupportedError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from gateway.config.views.problem import ViewError, refuse

_OPENING: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSING: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
# Everything else is written by its number: nothing in a literal can then mean anything outside of it.
_PLAIN: Final = re.compile(r"[A-Za-z0-9 _.,:%]*")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
# Escapes that all readers agree about; before % and _ a backslash stays, for LIKE.
_AGREED: Final = frozenset("\\'\"ntr%_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of a query is read."""

    characters: int = 64 * 1024
    words: int = 10_000
    depth: int = 24
    # Off for what was written here.
    checks_escapes: bool = True


_LIMITS: Final = Limits()


class _Views(Spark):
    """Spark's dialect. Functions are names with arguments: none is translated into another."""

    class Parser(SparkParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: SparkParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "EXTRACT")
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {
            TokenType.CURRENT_DATE: exp.CurrentDate,
            TokenType.CURRENT_TIMESTAMP: exp.CurrentTimestamp,
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
        }

    class Generator(SparkGenerator):
        def literal_sql(self, expression: exp.Literal) -> str:
            return f"'{escaped(expression.this)}'" if expression.is_string else str(expression.this)


def parse_query(text: str, limits: Limits = _LIMITS) -> exp.Expr:
    """Return the tree of the one statement of a text."""
    trees = [tree for tree in _parse(text, None, limits) if tree is not None]
    if len(trees) != 1:
        raise refuse(f"must be one query, not {len(trees)} statements")
    return trees[0]


def parse_condition(text: str) -> exp.Expr:
    """Return the tree of a condition that stands by itself."""
    (tree,) = _parse(text, exp.Condition, _LIMITS)
    if tree is None:
        raise refuse("must be a condition")
    return tree


def write(tree: exp.Expr) -> str:
    """Return a tree as text that reads as the same tree, here and in Spark."""
    try:
        text = _Views.Generator(
            dialect=_Views, identify=True, comments=False, unsupported_level=ErrorLevel.RAISE
        ).generate(tree)
    except (UnsupportedError, RecursionError, ValueError) as exc:
        raise refuse("cannot be written for Spark: put it in simpler words") from exc
    return str(text)


def tokenize(text: str) -> Sequence[Token]:
    try:
        return _Views().tokenize(text)
    except SqlglotError as exc:
        raise refuse("is not SQL: a quote, a comment or a character is out of place") from exc


def escaped(text: str) -> str:
    """Return what stands between the quotes of a literal in Spark."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(char if _PLAIN.fullmatch(char) else _numbered(char) for char in text)


def _numbered(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def _parse(text: str, into: type[exp.Expr] | None, limits: Limits) -> Sequence[exp.Expr | None]:
    if len(text) > limits.characters:
        raise refuse(f"has more than {limits.characters:,} characters")
    tokens = tokenize(text)
    _check_tokens(tokens, text, limits)
    parser = _Views().parser(error_level=ErrorLevel.RAISE)
    try:
        if into is not None:
            return parser.parse_into(into, list(tokens), text)
        return parser.parse(list(tokens), text)
    except ParseError as exc:
        raise _unreadable(exc) from exc
    except (SqlglotError, RecursionError, ValueError, TypeError, KeyError, AttributeError) as exc:
        raise refuse("cannot be read as Spark SQL: put it in simpler words") from exc


def _check_tokens(tokens: Sequence[Token], text: str, limits: Limits) -> None:
    if len(tokens) > limits.words:
        raise refuse(f"has more than {limits.words:,} words and signs")
    depth = 0
    last = None
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth > limits.depth:
            raise refuse(f"nests brackets more than {limits.depth} deep")
        if token.token_type is TokenType.STRING and limits.checks_escapes:
            _check_literal(text[token.start : token.end + 1])
            if last is not None and last.token_type is TokenType.STRING and last.end + 1 == token.start:
                # A quote in the text to some versions of Spark, two texts to others.
                raise refuse("has a literal with a quote that is doubled: write \\' for a quote in a text")
        last = token


def _check_literal(raw: str) -> None:
    """Refuse what readers of SQL do not agree about: such a literal may say something else than it seems."""
    for escape in _ESCAPE.findall(raw[1:-1]):
        if escape not in _AGREED:
            raise refuse(f"has a literal with the escape \\{escape}: write \\\\ for a backslash")


def _unreadable(exc: ParseError) -> ViewError:
    first = exc.errors[0] if exc.errors else {}
    place = f"line {first.get('line')}, column {first.get('col')}" if first.get("line") else "its end"
    near = str(first.get("highlight") or "")[:40]
    return refuse(f"cannot be read as Spark SQL at {place}" + (f", near {near!r}" if near else ""))
