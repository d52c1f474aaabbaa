"""What a view's query may be made of. Whatever is not named here is refused, known or not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from sqlglot import exp

from gateway.config.nearest import nearest
from gateway.config.views.functions import ALLOWED, RECIPIENT
from gateway.config.views.problem import Problem

_TWO: Final = frozenset({"this", "expression"})
_ONE: Final = frozenset({"this"})
_NONE: Final = frozenset[str]()
_CLAUSES: Final = "with_ expressions from_ joins where group having order limit offset distinct"
_SELECT: Final = frozenset(_CLAUSES.split())

# The parts of each kind of node that may be there.
_PARTS: Final[Mapping[type[exp.Expr], frozenset[str]]] = {
    exp.Select: _SELECT,
    **dict.fromkeys(
        (exp.Union, exp.Intersect, exp.Except),
        _TWO | {"with_", "distinct", "by_name", "order", "limit", "offset"},
    ),
    exp.With: frozenset({"expressions"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.Subquery: frozenset({"this", "alias", "order", "limit", "offset"}),
    exp.Table: frozenset({"this", "db", "catalog", "alias"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.From: _ONE,
    exp.Join: frozenset({"this", "on", "using", "side", "kind"}),
    exp.Where: _ONE,
    exp.Having: _ONE,
    exp.Group: frozenset({"expressions", "cube", "rollup", "grouping_sets"}),
    exp.GroupingSets: frozenset({"expressions"}),
    exp.Cube: frozenset({"expressions"}),
    exp.Rollup: frozenset({"expressions"}),
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Limit: frozenset({"expression"}),
    exp.Offset: frozenset({"expression"}),
    exp.Distinct: frozenset({"expressions"}),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Column: frozenset({"this", "table", "db", "catalog"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Star: frozenset({"except_"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Boolean: _ONE,
    exp.Null: _NONE,
    exp.Paren: _ONE,
    exp.Tuple: frozenset({"expressions"}),
    **dict.fromkeys(
        (
            *(exp.And, exp.Or, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE),
            *(exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.RegexpLike, exp.Escape, exp.Like, exp.ILike),
            *(exp.Add, exp.Sub, exp.Mul, exp.IntDiv, exp.Mod, exp.DPipe, exp.Dot),
            *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.Extract),
        ),
        _TWO | {"negate", "safe"},
    ),
    exp.Div: _TWO | {"typed", "safe"},
    exp.Not: _ONE,
    exp.Neg: _ONE,
    exp.BitwiseNot: _ONE,
    exp.In: frozenset({"this", "expressions", "query"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Exists: _ONE,
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true", "false"}),
    exp.Cast: frozenset({"this", "to", "safe"}),
    exp.TryCast: frozenset({"this", "to", "safe"}),
    exp.DataType: frozenset({"this", "expressions", "nested"}),
    exp.DataTypeParam: _ONE,
    exp.ColumnDef: frozenset({"this", "kind"}),
    exp.Interval: frozenset({"this", "unit"}),
    exp.IntervalSpan: _TWO,
    exp.Var: _ONE,
    exp.Bracket: frozenset({"this", "expressions", "offset", "safe"}),
    exp.Concat: frozenset({"expressions", "safe", "coalesce"}),
    exp.Lambda: frozenset({"this", "expressions"}),
    exp.Anonymous: frozenset({"this", "expressions"}),
    exp.Window: frozenset({"this", "partition_by", "order", "spec", "over"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side"}),
    exp.Filter: _TWO,
    exp.WithinGroup: _TWO,
    exp.IgnoreNulls: _ONE,
    exp.RespectNulls: _ONE,
    exp.CurrentDate: _NONE,
    exp.CurrentTimestamp: _NONE,
}
# Words that stand in a node as they are.
_WORDS: Final[Mapping[tuple[type[exp.Expr], str], re.Pattern[str]]] = {
    (exp.Literal, "this"): re.compile(r"(?s:.*)"),
    (exp.Identifier, "this"): re.compile(r"(?s:.*)"),
    (exp.Anonymous, "this"): re.compile(r"[A-Za-z_][A-Za-z0-9_]*"),
    (exp.Var, "this"): re.compile(r"[A-Za-z]+"),
    (exp.Join, "side"): re.compile(r"(?i:left|right|full)"),
    (exp.Join, "kind"): re.compile(r"(?i:inner|cross|outer|semi|anti)"),
    (exp.Window, "over"): re.compile(r"(?i:over)"),
    (exp.WindowSpec, "kind"): re.compile(r"(?i:rows|range)"),
    **{
        (exp.WindowSpec, side): re.compile(r"(?i:unbounded|current row|preceding|following)")
        for side in ("start", "start_side", "end", "end_side")
    },
}
_TYPE_NAMES: Final = (
    "BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DECIMAL TEXT BINARY DATE TIMESTAMP TIMESTAMPTZ "
    "TIMESTAMPNTZ ARRAY MAP STRUCT"
)
_TYPES: Final = frozenset(_TYPE_NAMES.split())
_NUMBER: Final = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# A dollar begins what Spark substitutes before it reads anything.
_IDENTIFIER: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f`$\\;\u2028\u2029\ud800-\udfff]{1,255}")
# What Spark takes for a call where no column has the name, quoted or not.
_CALLS: Final = (
    "current_user user session_user current_date current_timestamp current_time localtimestamp "
    "current_catalog current_database current_schema grouping__id"
)
_HIDDEN: Final = frozenset(_CALLS.split())
_METADATA: Final = "_metadata"
_MEANT: Final[Mapping[type[exp.Expr], str]] = {
    exp.Hint: "hints are not allowed",
    exp.Lateral: "LATERAL is not allowed",
    exp.TableSample: "TABLESAMPLE is not allowed: it shows other rows each time",
    exp.Pivot: "PIVOT is not allowed",
    exp.Version: "time travel is not allowed: a view shows the latest version",
    exp.Placeholder: "has no parameters; use current_recipient('property') for what differs by recipient",
    exp.Parameter: "has no variables; use current_recipient('property') for what differs by recipient",
    exp.Values: "VALUES is not allowed",
    exp.Array: "an index of array(…) is not allowed: use element_at",
}


def check_grammar(tree: exp.Expr) -> Iterator[Problem]:
    """Return everything in a tree that no view may have."""
    if not isinstance(tree, exp.Select | exp.SetOperation | exp.Subquery):
        yield Problem(message="must be a query: SELECT …")
        return
    yield from check_expression(tree)


def check_expression(tree: exp.Expr) -> Iterator[Problem]:
    """Return everything in a condition that no view may have."""
    yield from (problem for node in tree.walk() for problem in _judge(node))


def _judge(node: exp.Expr) -> Iterator[Problem]:
    problems = list(_check_node(node))
    yield from problems or _SPECIAL.get(type(node), _nothing)(node)


def _check_node(node: exp.Expr) -> Iterator[Problem]:
    kind = type(node)
    if kind not in _PARTS:
        yield Problem(message=_MEANT.get(kind, f"{_spelled(kind.__name__)} is not allowed"))
        return
    for name, value in node.args.items():
        if value is None or value is False or value == []:
            continue
        if name not in _PARTS[kind]:
            meant = _MEANT.get(type(value)) if isinstance(value, exp.Expr) else None
            part = _spelled(name.strip("_"))
            yield Problem(message=meant or f"{_spelled(kind.__name__)} with {part} is not allowed")
        elif isinstance(value, str) and not _is_word(kind, name, value):
            yield Problem(message=f"{_spelled(kind.__name__)} {value[:40]!r} is not allowed")


def _is_word(kind: type[exp.Expr], name: str, value: str) -> bool:
    pattern = _WORDS.get((kind, name))
    return pattern is not None and pattern.fullmatch(value) is not None


def _check_function(node: exp.Expr) -> Iterator[Problem]:
    name = str(node.this)
    if name.lower() not in ALLOWED:
        words = f"the function {name} is not one that views may call"
        yield Problem(message=words, suggestion=nearest(name.lower(), sorted(ALLOWED)))
    elif name.lower() == RECIPIENT and not _is_property(node.expressions):
        yield Problem(message=f"{RECIPIENT} takes one name of a property, in quotes: {RECIPIENT}('region')")


def _is_property(arguments: list[exp.Expr]) -> bool:
    return len(arguments) == 1 and isinstance(arguments[0], exp.Literal) and arguments[0].is_string


def _check_identifier(node: exp.Expr) -> Iterator[Problem]:
    if not _IDENTIFIER.fullmatch(str(node.this)):
        yield Problem(message=f"the name {str(node.this)[:40]!r} has a character that no name may have")


def _check_column(node: exp.Expr) -> Iterator[Problem]:
    parts = [part for part in node.args.values() if isinstance(part, exp.Identifier)]
    for part in parts:
        name = str(part.this).lower()
        if name == _METADATA:
            yield Problem(message=f"{_METADATA} is not a column: it tells where files lie")
        elif name in _HIDDEN and len(parts) == 1:
            words = (
                f"{part.this} means something else where no column is called so: write the table before it"
            )
            yield Problem(message=words)


def _check_literal(node: exp.Expr) -> Iterator[Problem]:
    if not node.args.get("is_string") and not _NUMBER.fullmatch(str(node.this)):
        yield Problem(message=f"the number {str(node.this)[:40]!r} is not one")


def _check_type(node: exp.Expr) -> Iterator[Problem]:
    kind = node.this
    name = kind.name if isinstance(kind, exp.DataType.Type) else str(kind)
    if name not in _TYPES:
        yield Problem(message=f"the type {name} is not allowed")


def _check_table(node: exp.Expr) -> Iterator[Problem]:
    if isinstance(node.this, exp.Anonymous):
        yield Problem(message=f"the table function {node.this.this} is not allowed")
    elif not isinstance(node.this, exp.Identifier):
        yield Problem(message="a table is a name: share.schema.table")


def _nothing(_: exp.Expr) -> Iterator[Problem]:
    yield from ()


def _spelled(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ").upper()


_SPECIAL: Final[Mapping[type[exp.Expr], Callable[[exp.Expr], Iterator[Problem]]]] = {
    exp.Anonymous: _check_function,
    exp.Identifier: _check_identifier,
    exp.Column: _check_column,
    exp.Literal: _check_literal,
    exp.DataType: _check_type,
    exp.Table: _check_table,
}
