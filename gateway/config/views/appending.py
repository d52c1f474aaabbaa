"""What brings a view up to date: added rows alone, or the mere passing of time."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from gateway.config.views.functions import AGGREGATE, CLOCK, WINDOW

_ROW_BY_ROW: Final = frozenset({"expressions", "from_", "where"})
_NOT_ROW_BY_ROW: Final = (
    exp.Query,
    exp.Window,
    exp.Filter,
    exp.WithinGroup,
    exp.Distinct,
    exp.CurrentDate,
    exp.CurrentTimestamp,
)
_NOT_OF_ROWS: Final = AGGREGATE | WINDOW | CLOCK


def is_appendable(tree: exp.Expr) -> bool:
    """Tell whether an expanded query is a projection and a filter of one source, row by row."""
    if not isinstance(tree, exp.Select) or {name for name, part in tree.args.items() if part} - _ROW_BY_ROW:
        return False
    below = tree.args["from_"].this if tree.args.get("from_") else None
    where = tree.args.get("where")
    parts = [*tree.expressions, *([where] if where else [])]
    if not all(_is_of_a_row(node) for part in parts for node in part.walk()):
        return False
    if isinstance(below, exp.Subquery):
        return not below.args.get("order") and not below.args.get("limit") and is_appendable(below.this)
    return isinstance(below, exp.Table)


def uses_clock(tree: exp.Expr) -> bool:
    """Tell whether an expanded query shows something else when time has passed and no source has changed."""
    return any(_is_clock(node) for node in tree.walk())


def _is_clock(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in CLOCK
    return isinstance(node, exp.CurrentDate | exp.CurrentTimestamp)


def _is_of_a_row(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() not in _NOT_OF_ROWS
    return not isinstance(node, _NOT_ROW_BY_ROW)
