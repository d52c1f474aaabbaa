"""Which columns a query has, and whether those that it names are there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from gateway.config.nearest import nearest
from gateway.config.views.binding import Key, key_of
from gateway.config.views.problem import Problem

# None where they cannot be known.
Columns = tuple[str, ...] | None
FindColumns = Callable[[Key], Columns]

# Delta keeps these out of names of columns.
_UNFIT: Final = re.compile(r"[ ,;{}()\n\t=]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What the columns of one SELECT may be taken from."""

    # By alias, in lower case.
    sources: Mapping[str, Columns]
    # Full names, by alias.
    keys: Mapping[str, Key] = field(default_factory=dict)
    # Names that its own list gives, and columns that joins have in common.
    aliases: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()


class ColumnCheck:
    """Goes through a query as it was written, and keeps what is wrong with its columns."""

    def __init__(self, find_columns: FindColumns) -> None:
        self._find = find_columns
        self.problems: list[Problem] = []

    def check(self, tree: exp.Expr) -> Columns:
        """Return the columns of a view's query; they have names, and no two the same."""
        columns = self._query(tree, {}, ())
        self._check_output(tree, columns)
        return columns

    def _query(self, node: exp.Expr, ctes: Mapping[str, Columns], outer: Sequence[Frame]) -> Columns:
        ctes = dict(ctes)
        with_ = node.args.get("with_")
        for cte in with_.expressions if with_ else ():
            found = self._query(cte.this, ctes, ())
            ctes[_lower(cte.args["alias"].this)] = _renamed(found, cte.args["alias"])
        if isinstance(node, exp.SetOperation):
            left = self._query(node.this, ctes, outer)
            self._query(node.expression, ctes, outer)
            return left
        if isinstance(node, exp.Subquery):
            return self._query(node.this, ctes, outer)
        return self._select(node, ctes, outer)

    def _select(self, node: exp.Expr, ctes: Mapping[str, Columns], outer: Sequence[Frame]) -> Columns:
        frame = self._frame(node, ctes, outer)
        frames = (frame, *outer)
        for name, part in node.args.items():
            if name not in {"with_", "from_"}:
                for expression in part if isinstance(part, list) else [part]:
                    if isinstance(expression, exp.Expr):
                        self._visit(expression, ctes, frames, frozenset())
        return self._list(node, frame)

    def _frame(self, node: exp.Expr, ctes: Mapping[str, Columns], outer: Sequence[Frame]) -> Frame:
        sources: dict[str, Columns] = {}
        keys: dict[str, Key] = {}
        shared: set[str] = set()
        from_ = node.args.get("from_")
        joins = node.args.get("joins") or []
        for part in [from_, *joins] if from_ else joins:
            shared |= {_lower(name) for name in part.args.get("using") or ()}
            alias, columns, key = self._source(part.this, ctes, outer)
            sources[alias] = columns
            if key is not None:
                keys[alias] = key
        aliases = frozenset(
            _lower(item.args["alias"]) for item in node.expressions if isinstance(item, exp.Alias)
        )
        return Frame(sources=sources, keys=keys, aliases=aliases, shared=frozenset(shared))

    def _source(
        self, node: exp.Expr, ctes: Mapping[str, Columns], outer: Sequence[Frame]
    ) -> tuple[str, Columns, Key | None]:
        alias = node.args.get("alias")
        if isinstance(node, exp.Table):
            key = key_of(node)
            columns = ctes.get(_lower(node.this)) if key is None else self._find(key)
            name = alias.this if alias is not None and alias.this is not None else node.this
            return _lower(name), _renamed(columns, alias), key
        columns = self._query(node, ctes, ())
        name = alias.this if alias is not None else None
        return _lower(name) if name is not None else f" {id(node)}", _renamed(columns, alias), None

    def _visit(
        self, node: exp.Expr, ctes: Mapping[str, Columns], frames: Sequence[Frame], bound: frozenset[str]
    ) -> None:
        if isinstance(node, exp.Query):
            self._query(node, ctes, frames)
            return
        if isinstance(node, exp.Lambda):
            bound |= {_lower(name) for name in node.expressions}
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            self._column(node, frames, bound)
            return
        for child in node.iter_expressions():
            self._visit(child, ctes, frames, bound)

    def _column(self, node: exp.Expr, frames: Sequence[Frame], bound: frozenset[str]) -> None:
        parts = [node.args.get(name) for name in ("catalog", "db", "table", "this")]
        names = [_lower(part) for part in parts if part is not None]
        if names[0] in bound:
            return
        for frame in frames:
            verdict = _resolve(names, frame)
            if verdict is not None:
                self.problems += [verdict] if isinstance(verdict, Problem) else []
                return
        self.problems.append(_missing(node, names, frames))

    def _list(self, node: exp.Expr, frame: Frame) -> Columns:
        found: list[str] = []
        for item in node.expressions:
            names = _starred(item, frame) if item.is_star else (item.alias_or_name,)
            if names is None:
                return None
            found += names
        return tuple(found)

    def _check_output(self, tree: exp.Expr, columns: Columns) -> None:
        select = tree.find(exp.Select)
        for number, item in enumerate(select.expressions if select else (), start=1):
            if not item.is_star and not _is_named(item):
                words = f"column {number} of its result needs a name: write … AS name"
                self.problems.append(Problem(message=words))
        named = [item.alias_or_name for item in (select.expressions if select else ()) if _is_named(item)]
        self.problems += _wrong_names(columns if columns is not None else named)


def _resolve(names: Sequence[str], frame: Frame) -> Problem | bool | None:
    """Return True where a name is a column of a frame, what is wrong with it, or None if it may be outer."""
    qualified = _qualified(names, frame)
    if qualified is not None:
        alias, column = qualified
        columns = frame.sources[alias]
        if columns is None or column in map(str.lower, columns):
            return True
        return Problem(message=f"{alias} has no column {column!r}", suggestion=nearest(column, columns))
    holders = [
        alias
        for alias, columns in frame.sources.items()
        if columns is not None and names[0] in map(str.lower, columns)
    ]
    if len(holders) > 1 and names[0] not in frame.shared:
        words = f"the column {names[0]!r} is one of {' and of '.join(holders)}: write the table before it"
        return Problem(message=words)
    if holders or names[0] in frame.aliases or None in frame.sources.values():
        return True
    return None


def _qualified(names: Sequence[str], frame: Frame) -> tuple[str, str] | None:
    for alias, key in frame.keys.items():
        if len(names) > len(key) and tuple(names[: len(key)]) == tuple(part.lower() for part in key):
            return alias, names[len(key)]
    return (names[0], names[1]) if len(names) > 1 and names[0] in frame.sources else None


def _missing(node: exp.Expr, names: Sequence[str], frames: Sequence[Frame]) -> Problem:
    known = [column for frame in frames for columns in frame.sources.values() for column in columns or ()]
    parts = [node.args.get(name) for name in ("catalog", "db", "table", "this")]
    written = ".".join(str(part.this) for part in parts if part is not None)
    return Problem(
        message=f"no table here has the column {written!r}",
        suggestion=nearest(names[0], dict.fromkeys(known)),
    )


def _starred(item: exp.Expr, frame: Frame) -> Columns:
    star = item.this if isinstance(item, exp.Column) else item
    left_out = {_lower(column) for column in star.args.get("except_") or ()}
    if isinstance(item, exp.Column):
        qualifier = _lower(item.args["table"]) if item.args.get("table") is not None else ""
        # Of a struct, or of a table that was reported already.
        sources = [frame.sources.get(qualifier)]
    else:
        sources = list(frame.sources.values())
    if any(columns is None for columns in sources):
        return None
    names = [name for columns in sources for name in columns or () if name.lower() not in left_out]
    # USING shows what both sides have once.
    return tuple(dict.fromkeys(names)) if frame.shared else tuple(names)


def _wrong_names(names: Sequence[str]) -> Iterator[Problem]:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            yield Problem(message=f"its result has two columns {name!r}: rename one")
        seen.add(name.lower())
        if _UNFIT.search(name):
            yield Problem(message=f"no column may be called {name!r}: rename it with AS")


def _is_named(item: exp.Expr) -> bool:
    return isinstance(item, exp.Alias | exp.Column | exp.Dot) and not item.is_star


def _renamed(columns: Columns, alias: exp.Expr | None) -> Columns:
    given = alias.args.get("columns") if alias is not None else None
    return tuple(str(name.this) for name in given) if given else columns


def _lower(name: exp.Expr) -> str:
    return str(name.this if isinstance(name.this, str) else name.name).lower()
