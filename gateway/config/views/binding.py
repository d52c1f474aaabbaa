"""What the names of tables in a query mean, and the query with those names replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from gateway.config.nearest import nearest
from gateway.config.views.problem import Problem, refuse
from gateway.domain.name import fold

_MOST: Final = 64

Key = tuple[str, str, str]
# Common table expressions that can be seen from a place, by their names in lower case.
_Seen = Mapping[str, str]


def key_of(table: exp.Expr) -> Key | None:
    """Return the folded name of a table of the catalog; None for a name of other length."""
    return _key(table, "this")


def _key(node: exp.Expr, last: str) -> Key | None:
    parts = [node.args.get(name) for name in ("catalog", "db", last)]
    if not all(isinstance(part, exp.Identifier) for part in parts):
        return None
    share, schema, name = (fold(str(part.this)) for part in parts if part is not None)
    return share, schema, name


def references(tree: exp.Expr, known: Mapping[Key, str]) -> tuple[list[Key], list[Problem]]:
    """Return the tables and views that a query reads, and what is wrong with their names."""
    keys: list[Key] = []
    problems: list[Problem] = []
    for table, seen in _tables(tree, {}):
        key = key_of(table)
        if key is not None and key in known:
            keys.append(key)
        elif key is not None or not _is_seen(table, seen):
            problems.append(_unknown(table, known, seen))
    return list(dict.fromkeys(keys)), problems


@dataclass(slots=True, kw_only=True)
class Expansion:
    """A query on its way to Spark: views become parts of it, names become ours."""

    # The tree of a view, or None for a table.
    find_view: Callable[[Key], exp.Expr | None]
    sources: dict[Key, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    views: int = 0
    _queries: int = 0

    def expand(self, tree: exp.Expr) -> exp.Expr:
        """Return a copy of a tree in which every table is a source, and every property a parameter."""
        # Below something that can be replaced in: the root of a tree cannot.
        holder = exp.Paren(this=tree.copy())
        # Before views become parts of it: their columns are shortened by their own tables.
        _shorten_columns(holder)
        for table, seen in list(_tables(holder.this, {}, self._rename)):
            self._bind(table, seen)
        for call in list(holder.find_all(exp.Anonymous)):
            if str(call.this).lower() == "current_recipient":
                call.replace(exp.Placeholder(this=self._parameter(str(call.expressions[0].this))))
        found: exp.Expr = holder.this
        return found

    def _rename(self, name: str) -> str:
        self._queries += 1
        return f"query_{self._queries - 1}"

    def _bind(self, table: exp.Expr, seen: _Seen) -> None:
        key, name = key_of(table), str(table.this.this)
        alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name, quoted=True))
        if key is None:
            table.replace(_named(seen[name.lower()], alias))
            return
        inner = self.find_view(key)
        if inner is None:
            source = self.sources.setdefault(key, f"source_{len(self.sources)}")
            if len(self.sources) > _MOST:
                raise refuse(f"reads more than {_MOST} tables")
            table.replace(_named(source, alias))
            return
        self.views += 1
        if self.views > _MOST:
            raise refuse(f"reads views more than {_MOST} times, those below it counted")
        table.replace(exp.Subquery(this=_unwrapped(self.expand(inner)), alias=alias.copy()))

    def _parameter(self, name: str) -> str:
        return self.properties.setdefault(name, f"property_{len(self.properties)}")


def _tables(
    node: exp.Expr, seen: _Seen, rename: Callable[[str], str] | None = None
) -> Iterator[tuple[exp.Expr, _Seen]]:
    """Return each table of a query with the common table expressions that its name could mean."""
    if isinstance(node, exp.Table):
        yield node, seen
        return
    inner = dict(seen)
    with_ = node.args.get("with_")
    for cte in with_.expressions if isinstance(with_, exp.With) else ():
        # Those before it: none is seen by itself, for none may be recursive.
        yield from _tables(cte.this, dict(inner), rename)
        name = str(cte.args["alias"].this.this)
        new = rename(name) if rename else name
        cte.args["alias"].set("this", exp.to_identifier(new, quoted=True))
        inner[name.lower()] = new
    for child in node.iter_expressions():
        if child is not with_:
            yield from _tables(child, inner, rename)


def _is_seen(table: exp.Expr, seen: _Seen) -> bool:
    is_short = table.args.get("db") is None and table.args.get("catalog") is None
    return is_short and str(table.this.this).lower() in seen


def _unknown(table: exp.Expr, known: Mapping[Key, str], seen: _Seen) -> Problem:
    parts = [table.args.get(part) for part in ("catalog", "db", "this")]
    written = ".".join(str(part.this) for part in parts if part is not None)
    meant = nearest(written, [*known.values(), *seen], 0.5)
    if key_of(table) is None:
        words = f"{written!r} is not a table here: tables and views are named share.schema.table"
        return Problem(message=words, suggestion=meant)
    return Problem(message=f"there is no table or view {written!r}", suggestion=meant)


def _named(name: str, alias: exp.Expr) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name, quoted=True), alias=alias.copy())


def _unwrapped(tree: exp.Expr) -> exp.Expr:
    while isinstance(tree, exp.Subquery) and not any(
        tree.args.get(part) for part in ("order", "limit", "alias")
    ):
        tree = tree.this
    return tree


def _shorten_columns(tree: exp.Expr) -> None:
    """Have the tables of columns be called by their aliases: under full names Spark does not know them."""
    full_names = {key_of(table) for table in tree.find_all(exp.Table) if table.args.get("alias") is None}
    for column in list(tree.find_all(exp.Column)):
        key = _key(column, "table")
        if key is not None and key in full_names:
            _shorten(column, key)


def _shorten(column: exp.Column, key: Key) -> None:
    """Drop the share and the schema before a column, where what is left can mean that table only."""
    select = column.find_ancestor(exp.Query)
    tables = _read_by(select) if isinstance(select, exp.Select) else []
    # One that is read further out could be hidden on the way: by a table, a column or a field of its name.
    is_here = [key_of(table) for table in tables if _called(table) == key[2]] == [key]
    if select is None or not is_here or key[2] in _given_names(column, select):
        written = ".".join(str(part.name) for part in column.parts)
        raise refuse(
            f"{written!r} could be a column of something else that is called {column.table!r}, or of a table "
            "that is read further out: give each table an alias with AS, and write that before the column"
        )
    column.set("catalog", None)
    column.set("db", None)


def _read_by(select: exp.Expr) -> list[exp.Expr]:
    from_ = select.args.get("from_")
    parts = [*([from_] if from_ else []), *(select.args.get("joins") or [])]
    return [part.this for part in parts]


def _called(table: exp.Expr) -> str:
    """Return the name, folded, that columns of a table have before them."""
    return fold(str(table.alias_or_name))


def _given_names(column: exp.Expr, select: exp.Expr) -> set[str]:
    """Return the names, folded, that a list gives to its columns, and functions to their arguments."""
    names = {fold(str(item.alias)) for item in select.expressions if isinstance(item, exp.Alias)}
    above = column.parent
    while above is not None and above is not select:
        if isinstance(above, exp.Lambda):
            names |= {fold(str(name.name)) for name in above.expressions}
        above = above.parent
    return names
