"""What a predicate says, as a tree: columns against constants, joined by and, or and not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, TypeAlias

from gateway.services.snapshot.predicate.data_type import BOOLEAN, DataType

# A tree is walked by recursion, and a comparison or a cast is a pass over all files of the table.
MAX_DEPTH: Final = 100
MAX_NODES: Final = 500
_MAX_CASTS: Final = 4


class ParseFault(Exception):
    """The hint is not understood, and is skipped as a whole."""


class Operator(StrEnum):
    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def flipped(self) -> Operator:
        """Return the operator that says the same with the sides changed."""
        return _FLIPPED[self]

    @property
    def negated(self) -> Operator:
        return _NEGATED[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column by the parts of its name, cast to each of the types in turn."""

    path: tuple[str, ...]
    casts: tuple[DataType, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A constant as it was written; without a text it is null."""

    text: str | None
    type: DataType
    casts: tuple[DataType, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    operator: Operator
    column: Column
    literal: Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class In:
    """The column equals one of the literals, none of which is null."""

    column: Column
    literals: tuple[Literal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    column: Column
    prefix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNull:
    column: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class And:
    children: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Or:
    children: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Not:
    child: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """The same for every row; None is null, which neither matches nor fails to."""

    value: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A part that is understood as a part, and no further: every row may match it, or not."""


Operand: TypeAlias = Column | Literal | Unknown
Expression: TypeAlias = Comparison | In | Prefix | IsNull | And | Or | Not | Constant | Unknown

NULL: Final = Constant(value=None)
UNKNOWN: Final = Unknown()


def compare(operator: Operator, left: Operand, right: Operand) -> Expression:
    """Return the comparison of a column with a constant, whichever side it is on."""
    if isinstance(left, Literal) and isinstance(right, Column):
        left, right, operator = right, left, operator.flipped
    if not isinstance(left, Column) or not isinstance(right, Literal):
        return UNKNOWN
    return NULL if right.text is None else Comparison(operator=operator, column=left, literal=right)


def compare_null_safe(left: Operand, right: Operand) -> Expression:
    """Return the comparison for which null equals null."""
    column, literal = (right, left) if isinstance(left, Literal) else (left, right)
    if not isinstance(column, Column) or not isinstance(literal, Literal):
        return UNKNOWN
    if literal.text is None:
        return IsNull(column=column)
    return And(children=(Not(child=IsNull(column=column)), compare(Operator.EQ, column, literal)))


def is_null(operand: Operand) -> Expression:
    if isinstance(operand, Column):
        return IsNull(column=operand)
    # A cast may turn a constant into null.
    if isinstance(operand, Unknown) or operand.casts:
        return UNKNOWN
    return Constant(value=operand.text is None)


def is_in(operand: Operand, items: tuple[Operand, ...]) -> Expression:
    literals = [item for item in items if isinstance(item, Literal)]
    if not items or not isinstance(operand, Column) or len(literals) < len(items):
        return UNKNOWN
    present = tuple(literal for literal in literals if literal.text is not None)
    found: list[Expression] = [In(column=operand, literals=present)] if present else []
    if len(present) < len(literals):
        found.append(NULL)
    return found[0] if len(found) == 1 else Or(children=tuple(found))


def has_prefix(operand: Operand, prefix: str) -> Expression:
    return Prefix(column=operand, prefix=prefix) if isinstance(operand, Column) else UNKNOWN


def holds(operand: Operand) -> Expression:
    """Return the predicate that a boolean value by itself is."""
    if isinstance(operand, Column):
        truth = Literal(text="true", type=BOOLEAN)
        return Comparison(operator=Operator.EQ, column=operand, literal=truth)
    if isinstance(operand, Literal) and operand.text is None:
        return NULL
    if isinstance(operand, Unknown) or operand.casts or operand.type != BOOLEAN:
        return UNKNOWN
    return _TRUTHS.get(operand.text or "", UNKNOWN)


def cast(operand: Operand, target: DataType | None) -> Operand:
    """Return the operand as another type; None is a type that is not known."""
    if isinstance(operand, Unknown) or target is None or len(operand.casts) >= _MAX_CASTS:
        return UNKNOWN
    return replace(operand, casts=(*operand.casts, target))


def count_leaves(expression: Expression) -> int:
    """Return how many parts are evaluated by themselves."""
    match expression:
        case And(children=children) | Or(children=children):
            return sum(map(count_leaves, children))
        case Not(child=child):
            return count_leaves(child)
    return 1


_TRUTHS: Final = {"true": Constant(value=True), "false": Constant(value=False)}
_FLIPPED: Final = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}
_NEGATED: Final = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.LE: Operator.GT,
    Operator.GT: Operator.LE,
    Operator.GE: Operator.LT,
}
