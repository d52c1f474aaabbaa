"""JSON predicates: the tree of operations that the sharing protocol describes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.services.snapshot.predicate.data_type import DataType, find_type
from gateway.services.snapshot.predicate.expression import (
    MAX_DEPTH,
    MAX_NODES,
    UNKNOWN,
    And,
    Column,
    Expression,
    Literal,
    Not,
    Operand,
    Operator,
    Or,
    ParseFault,
    cast,
    compare,
    holds,
    is_in,
    is_null,
)

MAX_TEXT: Final = 256 * 1024

_COMPARISONS: Final[Mapping[str, Operator]] = {
    "equal": Operator.EQ,
    "lessThan": Operator.LT,
    "lessThanOrEqual": Operator.LE,
    "greaterThan": Operator.GT,
    "greaterThanOrEqual": Operator.GE,
}
_LEAVES: Final = frozenset({"column", "literal"})
_TYPES: Final = frozenset({"bool", "int", "long", "string", "date", "float", "double", "timestamp"})


def parse_json(text: str) -> Expression:
    """Return the predicate of a JSON text, or raise ``ParseFault``."""
    if len(text) > MAX_TEXT:
        raise ParseFault("too long")
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ParseFault("not JSON") from exc
    return _Reader().read(tree, 1)


class _Reader:
    def __init__(self) -> None:
        self._nodes = 0

    def read(self, node: object, depth: int) -> Expression:
        op, fields = self._enter(node, depth)
        if op in _LEAVES:
            return holds(_leaf(op, fields))
        children = fields.get("children")
        if not isinstance(children, list) or not children:
            raise ParseFault(f"{op} has no children")
        if op in {"and", "or", "not"}:
            return _joined(op, [self.read(child, depth + 1) for child in children])
        return _tested(op, [self._read_leaf(child, depth + 1) for child in children], fields)

    def _read_leaf(self, node: object, depth: int) -> Operand:
        op, fields = self._enter(node, depth)
        return _leaf(op, fields) if op in _LEAVES else UNKNOWN

    def _enter(self, node: object, depth: int) -> tuple[str, Mapping[str, Any]]:
        self._nodes += 1
        # Each comparison has two leaves of its own.
        if depth > MAX_DEPTH or self._nodes > 3 * MAX_NODES:
            raise ParseFault("too deep or too large")
        if not isinstance(node, dict) or not isinstance(op := node.get("op"), str):
            raise ParseFault("an operation without a name")
        return op, node


def _joined(op: str, children: Sequence[Expression]) -> Expression:
    if op == "and":
        return And(children=tuple(children))
    if op == "or":
        return Or(children=tuple(children))
    if len(children) != 1:
        raise ParseFault("not has one child")
    return Not(child=children[0])


def _tested(op: str, operands: Sequence[Operand], fields: Mapping[str, Any]) -> Expression:
    if op == "isNull":
        if len(operands) != 1:
            raise ParseFault("isNull has one child")
        return is_null(operands[0])
    if op == "in":
        return is_in(operands[0], tuple(operands[1:])) if len(operands) > 1 else UNKNOWN
    if op not in _COMPARISONS:
        return UNKNOWN
    if len(operands) != len(("left", "right")):
        raise ParseFault(f"{op} has two children")
    return UNKNOWN if _is_collated(fields) else compare(_COMPARISONS[op], operands[0], operands[1])


def _is_collated(fields: Mapping[str, Any]) -> bool:
    """Tell whether texts are compared by other rules than their bytes."""
    context = fields.get("exprCtx")
    if not isinstance(context, dict):
        return context is not None
    collation = context.get("collationIdentifier")
    return collation is not None and "UTF8_BINARY" not in str(collation)


def _leaf(op: str, fields: Mapping[str, Any]) -> Operand:
    target = _type(fields.get("valueType"))
    if op == "column":
        name = fields.get("name")
        if not isinstance(name, str):
            raise ParseFault("a column without a name")
        return cast(Column(path=(name,)), target)
    value = fields.get("value")
    # Spark writes null as a text, which is then any text's.
    if target is None or value is None or value == "null" or not isinstance(value, str | int | float):
        return UNKNOWN
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return Literal(text=text, type=target)


def _type(name: object) -> DataType | None:
    return find_type(name) if isinstance(name, str) and name in _TYPES else None
