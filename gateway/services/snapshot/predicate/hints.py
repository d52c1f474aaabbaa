"""The predicate hints of a query: those that can be used, as one condition, and how many cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.predicate.condition import Condition, Operand, bind, every, operands_of
from gateway.services.snapshot.predicate.expression import Expression, ParseFault, count_leaves
from gateway.services.snapshot.predicate.json_hint import parse_json
from gateway.services.snapshot.predicate.sql import parse_sql
from gateway.services.snapshot.predicate.table_schema import TableSchema

SQL: Final = "sql"
JSON: Final = "json"

# Each of them is a pass over all files of the table: some milliseconds where they are a million.
_MAX_COMPARISONS: Final = 200
# Each column, and each type that one is cast to, is a pass that costs several comparisons, and memory.
_MAX_OPERANDS: Final = 20
_MAX_TEXT: Final = 512 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """A row is asked for that matches all of them; None: any row."""

    condition: Condition | None = field(default=None, repr=False)
    # By kind.
    used: Mapping[str, int] = field(default_factory=lambda: {SQL: 0, JSON: 0})
    skipped: Mapping[str, int] = field(default_factory=lambda: {SQL: 0, JSON: 0})


def parse_hints(sql: Sequence[str], json: str, metadata: Metadata) -> Hints:
    """Return what hints ask for; one that cannot be used is counted, and asks for nothing."""
    if not sql and not json:
        return Hints()
    schema = TableSchema(metadata)
    # Of each kind by itself, so that neither is lost to many of the other.
    found = {SQL: _conditions(sql, parse_sql, schema), JSON: _conditions([json], parse_json, schema)}
    given = {SQL: len(sql), JSON: 1 if json else 0}
    return Hints(
        condition=every(condition for conditions in found.values() for condition in conditions),
        used={kind: len(conditions) for kind, conditions in found.items()},
        skipped={kind: given[kind] - len(conditions) for kind, conditions in found.items()},
    )


def _conditions(
    texts: Sequence[str], parse: Callable[[str], Expression], schema: TableSchema
) -> list[Condition]:
    """Return the conditions of the hints that can be used, up to as many as a query may cost."""
    found: list[Condition] = []
    operands: frozenset[Operand] = frozenset()
    length = comparisons = 0
    for text in texts:
        length += len(text)
        if length > _MAX_TEXT or comparisons > _MAX_COMPARISONS:
            break
        try:
            expression = parse(text)
            comparisons += count_leaves(expression)
            condition = bind(expression, schema) if comparisons <= _MAX_COMPARISONS else None
        # Half of a surrogate pair, which JSON can name, is in no text of a table.
        except (ParseFault, RecursionError, UnicodeEncodeError):
            continue
        if condition is None:
            continue
        # One that is too much is skipped, and those after it may still be about the same columns.
        together = operands.union(operands_of(condition))
        if len(together) <= _MAX_OPERANDS:
            operands = together
            found.append(condition)
    return found
