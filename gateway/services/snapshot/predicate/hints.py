"""The predicate hints of a query: those that can be used, as one condition, and how many cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.predicate.condition import Condition, bind, every, operands_of
from gateway.services.snapshot.predicate.expression import MAX_NODES, Expression, ParseFault
from gateway.services.snapshot.predicate.json_hint import parse_json
from gateway.services.snapshot.predicate.sql import parse_sql
from gateway.services.snapshot.predicate.table_schema import TableSchema

SQL: Final = "sql"
JSON: Final = "json"


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
    found = {
        SQL: [_find_condition(text, parse_sql, schema) for text in sql],
        JSON: [_find_condition(json, parse_json, schema)] if json else [],
    }
    chosen = {kind: _affordable(conditions) for kind, conditions in found.items()}
    return Hints(
        condition=every(condition for conditions in chosen.values() for condition in conditions),
        used={kind: len(conditions) for kind, conditions in chosen.items()},
        skipped={kind: len(found[kind]) - len(conditions) for kind, conditions in chosen.items()},
    )


def _find_condition(text: str, parse: Callable[[str], Expression], schema: TableSchema) -> Condition | None:
    try:
        return bind(parse(text), schema)
    except ParseFault:
        return None


def _affordable(conditions: Sequence[Condition | None]) -> list[Condition]:
    """Return those that are known, as many as may be evaluated in one query."""
    chosen: list[Condition] = []
    cost = 0
    for condition in conditions:
        if condition is not None:
            cost += sum(1 for _ in operands_of(condition))
            if cost > MAX_NODES:
                break
            chosen.append(condition)
    return chosen
