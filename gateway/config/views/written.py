"""A last look at what Spark is given: read back, it is the query that was checked, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from sqlglot import exp

from gateway.config.views.dialect import Limits, parse_query, tokenize, write
from gateway.config.views.functions import ALLOWED, RECIPIENT
from gateway.config.views.grammar import check_grammar
from gateway.config.views.problem import Problem, ViewError

# Views upon views make more of it than anybody writes.
_LIMITS: Final = Limits(characters=256 * 1024, words=40_000, depth=40, checks_escapes=False)
# Comments, further statements and what Spark substitutes: nothing that is written has any of it, in literals
# and names neither.
_NEVER: Final = re.compile(r"--|/\*|;|\$|\{|\}|[\x00-\x1f]")
_TABLE: Final = re.compile(r"(?:source|query)_[0-9]+")
_PARAMETER: Final = re.compile(r"property_[0-9]+")
# A word of the language or the name of a function: all other names stand in quotes.
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words that stand before a bracket and are no call.
_KEYWORDS: Final = (
    "ALL AND ANTI ARRAY AS BETWEEN BY CASE CAST CROSS CUBE DECIMAL DISTINCT DIV ELSE ESCAPE EXCEPT "
    "EXISTS EXTRACT FILTER FROM GROUP HAVING ILIKE IN INNER INTERSECT INTERVAL IS JOIN LIKE LIMIT MAP "
    "NOT OFFSET ON OR OUTER OVER RLIKE ROLLUP SELECT SEMI SETS STRUCT THEN TRY_CAST UNION USING WHEN "
    "WHERE WITH"
)
_NOT_CALLED: Final = frozenset(_KEYWORDS.split())


def check_written(text: str) -> None:
    """Raise unless a text reads as the query that it was written from."""
    problems = list(_check(text))
    if problems:
        raise ViewError(problems)


def _check(text: str) -> Iterator[Problem]:
    if _NEVER.search(text):
        yield Problem(message="cannot be written for Spark: a name in it has a sign that means more there")
        return
    tree = parse_query(text, _LIMITS)
    if write(tree) != text:
        yield Problem(message="cannot be written for Spark so that it says the same: put it in simpler words")
    yield from _check_names(tree)
    for first, second in pairwise(tokenize(text)):
        word = text[first.start : first.end + 1]
        if second.text == "(" and _WORD.fullmatch(word) and not _may_precede(word.upper()):
            yield Problem(message=f"the function {word} is not one that views may call")


def _check_names(tree: exp.Expr) -> Iterator[Problem]:
    for parameter in list(tree.find_all(exp.Placeholder)):
        if not _PARAMETER.fullmatch(str(parameter.this)):
            yield Problem(message="has a parameter of its own")
        parameter.replace(exp.Null())
    for table in tree.find_all(exp.Table):
        if table.args.get("db") is not None or not _TABLE.fullmatch(str(table.this.this)):
            yield Problem(message="reads what is no source of it")
    yield from check_grammar(tree)


def _may_precede(word: str) -> bool:
    return word in _NOT_CALLED or (word.lower() in ALLOWED and word.lower() != RECIPIENT)
